"""The parts of a stack, in the order in which their values are chosen."""

from hadoop_dl.resolver.builds import BuildCatalog
from hadoop_dl.resolver.parts import Part
from hadoop_dl.resolver.rules import cudnn_and_build, driver, keras_and_io, site, spark


def all_parts(catalog: BuildCatalog) -> list[Part]:
    return [
        cudnn_and_build.Cudnn(catalog),
        driver.Driver(catalog),
        cudnn_and_build.BuildTools(catalog),
        keras_and_io.Keras(catalog),
        keras_and_io.TensorflowIo(catalog),
        spark.Spark(catalog),
        site.Site(catalog),
    ]
