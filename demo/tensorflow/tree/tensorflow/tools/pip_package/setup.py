from setuptools import Distribution, find_packages, setup

_VERSION = "@VERSION@"


class BinaryDistribution(Distribution):
    def has_ext_modules(self):
        return True


setup(
    name="tensorflow",
    version=_VERSION,
    description="A stand-in of TensorFlow for tests of its build",
    packages=find_packages(),
    package_data={"tensorflow.python": ["*.so"]},
    distclass=BinaryDistribution,
    zip_safe=False,
)
