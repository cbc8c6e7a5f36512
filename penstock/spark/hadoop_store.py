"""A checkpoint wherever Spark's Hadoop file system reaches: HDFS, an object store, or any scheme it knows."""

from __future__ import annotations

from typing import Any

from penstock.storage.local import LocalStore, Store, local_path, unreadable, unwritable


class HadoopStore:
    """Files below a checkpoint, through the file system and the atomic writes that Spark itself uses for them."""

    def __init__(self, spark: Any, root: str) -> None:
        self.root = root
        self._jvm = spark._jvm
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        path = self._jvm.org.apache.hadoop.fs.Path(root)
        self._system = path.getFileSystem(conf)
        checkpointing = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing
        self._files = checkpointing.CheckpointFileManager.create(path, conf)

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None where there is none."""
        path = self._path(name)
        try:
            if not self._system.exists(path):
                return None
            stream = self._system.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()
        except Exception as error:
            raise unreadable(f"{self.root}/{name}", error) from error

    def create(self, name: str, data: bytes) -> bool:
        """Make a file, whole or not at all; False where it is there already."""
        path = self._path(name)
        try:
            if self._system.exists(path):
                return False
            self._system.mkdirs(path.getParent())
            stream = self._files.createAtomic(path, False)
            stream.write(data)
            stream.close()
        except Exception as error:
            if "FileAlreadyExists" in str(error):
                return False
            raise unwritable(f"{self.root}/{name}", error) from error
        return True

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, in order."""
        path = self._path(folder)
        if not self._system.exists(path):
            return []
        found = [status.getPath().getName() for status in self._system.listStatus(path)]
        return sorted(name for name in found if not name.startswith("."))

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        self._system.delete(self._path(name), False)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}")


def store_of(spark: Any, checkpoint: str) -> Store:
    """The files of a checkpoint: by Python on this machine's disk, else by Hadoop."""
    local = local_path(checkpoint)
    return LocalStore(local) if local is not None else HadoopStore(spark, checkpoint.rstrip("/"))
