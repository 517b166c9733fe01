"""gpu-check: questions about a host's GPUs, driver, CUDA and TensorFlow. Python 2.7 and 3, standard library only.

questions.py has what a question is, host.py what it may ask; driver.py, toolkit.py, compute.py and health.py have the
questions. cudadriver.py and product.py compute. The report and the verify suite pack them into a script.
"""
