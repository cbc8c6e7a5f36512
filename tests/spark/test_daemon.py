"""The daemon that workers are forked from."""

import os

import pyspark

from penstock.spark.daemon import unzipped

PACKAGE = os.path.dirname(pyspark.__file__)
ZIP = os.path.join(PACKAGE, "python", "lib", "pyspark.zip")


def test_a_zip_of_the_pyspark_that_is_installed_is_left_out():
    path = [ZIP, "/a", os.path.dirname(PACKAGE)]
    assert unzipped(path) == path[1:]


def test_a_zip_that_is_the_only_pyspark_stays():
    assert unzipped([ZIP, "/a"]) == [ZIP, "/a"]
    elsewhere = "/opt/spark/python/lib/pyspark.zip"
    assert unzipped([elsewhere, os.path.dirname(PACKAGE)]) == [elsewhere, os.path.dirname(PACKAGE)]


def test_a_worker_reads_pyspark_from_its_package(spark):
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("pyspark").__file__).collect()
    assert found == [pyspark.__file__]
