"""Run a student's code in a process of its own: zygote, worker, and the grader's side of both.

- `zygote`: a clean process that has torch and nothing else, and forks a worker per submission.
- `worker`: the loop inside the worker; the only module of the harness that meets a student's code.
- `confine`: what the worker gives up before it reads a line of the student's.
- `channel`: the grader's end of the worker's socket, with caps and deadlines.
- `budget`: how long a call, a check and a submission may take.
- `backend`: `SandboxSubmission`, the seam over all of this.

Importing this package imports none of them: the zygote must stay clean.
"""
