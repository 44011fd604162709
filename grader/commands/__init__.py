"""The commands of `python -m grader`, a module each; `register` tells argparse of one.

A command imports what it needs when it runs: a worker's zygote must be forked from a process that has not
read what no submission may find there, and the handout has the students' commands only.
"""
