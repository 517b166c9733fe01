"""TensorFlow and HDFS together."""

import pytest

pytestmark = pytest.mark.part("hdfs")


def test_tensorflow_lists_the_root_of_hdfs(inside, hdfs_asked):
    error = inside("hdfs")["error"]
    assert error is None, f"TensorFlow should read HDFS through libhdfs, but says: {error}"
    assert inside("hdfs")["value"], "the root of HDFS is empty"
