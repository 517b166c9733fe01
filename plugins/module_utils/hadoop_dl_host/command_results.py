"""The result of a module that runs a program: as of Ansible's command, with a sentence if it did not end. Python 2.7 and 3."""

import os

ENDED = 124  # as coreutils' timeout


def end_with_answer(module, argv, answer, **more):
    """End the module with the answer of processes.run(). The sentence is in stderr as well, for tasks with a failed_when of their own."""
    error_text = answer.error or ""
    if answer.late or answer.status == 127:
        error_text = "%s\n%s" % (error_text, answer.problem) if error_text else answer.problem
    status = ENDED if answer.late else answer.status
    result = {"cmd": argv, "rc": status, "stdout": answer.output, "stderr": error_text, "changed": True}
    result.update(more)
    if answer.problem:
        module.fail_json(msg=answer.problem, **result)
    module.exit_json(**result)


def use_environment(module):
    """Set the variables of the parameter C(environment), and hide their values. Those of a task's keyword are in command lines (ps).

    Paths are no secrets, and short values cannot be hidden: they are parts of versions and other words.
    """
    variables = dict((str(name), str(value)) for name, value in (module.params["environment"] or {}).items())
    os.environ.update(variables)
    module.no_log_values = set(value for value in variables.values() if len(value) >= 6 and not value.startswith("/"))
