"""Operations on columns that pyarrow and numpy lack."""
