"""TensorFlow and HDFS together."""

import pytest

pytestmark = pytest.mark.part("hdfs")


def test_tensorflow_lists_the_root_of_hdfs(inside):
    assert inside("hdfs")["error"] is None, "TensorFlow should read HDFS through libhdfs"
    assert inside("hdfs")["value"], "the root of HDFS is empty"
