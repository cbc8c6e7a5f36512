"""Files and folders on a local disk and wherever pyarrow reaches."""
