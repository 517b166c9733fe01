"""Read a host for the report in one round: run report_reader.py (role verify) in its Python, answer with what it read."""

from typing import Any

from ansible.errors import AnsibleError
from ansible.executor.task_executor import TaskTimeoutError

from hadoop_dl.data import host_facts, report_answers, typed
from hadoop_dl.data.terminal import PARAGRAPH, one_line
from hadoop_dl.hosts import host_script
from hadoop_dl.hosts.actions import ScriptAction
from hadoop_dl.plan.yarn import MASTERS


class ActionModule(ScriptAction):
    """report_facts: no arguments; returns `facts` as host_facts does, and `asked`: `health`, `times` and what GPUs do,
    or `unanswered`, the reason why there are no facts.

    It never fails and leaves no host out: a host that does not answer is a row of the report with the reason.
    """

    def act(self) -> dict[str, Any]:
        facts = None
        try:
            asks_yarn = MASTERS in self.variables["group_names"]
            answer = self.run_script(host_script.report_reader(self.named(), asks_yarn=asks_yarn))
            facts = host_facts.read_facts(answer.get("facts"))
            report_answer = report_answers.asked_of(answer)
        except (host_script.NoAnswer, host_facts.FactsError, AnsibleError) as problem:
            report_answer = report_answers.Asked(unanswered=one_line(problem, PARAGRAPH))
        except TaskTimeoutError:
            report_answer = report_answers.Asked(unanswered=f"no answer within {self._task.timeout} s")
        return {"facts": typed.as_json(facts), "asked": typed.as_json(report_answer)}
