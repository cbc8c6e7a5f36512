#!/bin/sh
# Python without Spark's zips of sources on its path: see worker_python.py.
kept=
IFS=:
for entry in $PYTHONPATH; do
  case $entry in
    */pyspark/python/lib/*.zip) ;;
    *) kept=$kept${kept:+:}$entry ;;
  esac
done
PYTHONPATH=$kept exec "$PENSTOCK_PYTHON" "$@"
