"""Small faults put into the package one at a time, and whether the tests notice (`make mutants`).

| module | what |
|---|---|
| faults | every small change of a source that could be made |
| store | runs that are kept, and whether they are whole samples |
| reach | which tests reach which line, by coverage |
| trees | copies of the project, one of whose files is changed |
| server | a process that has imported everything but the package and forks for each fault |
| run | all faults of a run judged, some at a time |
| known | faults that change no result, with the reason |
| report | what was noticed, by folder |
| document | docs/mutants.md |
| errors | an error that is told in one line |
"""
