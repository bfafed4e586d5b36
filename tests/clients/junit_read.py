"""Whether a file is JUnit XML as `junitparser`, which CI tools stand on, reads it; and what it read."""

import json
import sys

from junitparser import Error, Failure, JUnitXml, Skipped

whole = JUnitXml.fromfile(sys.argv[1])
cases = [case for suite in whole for case in suite]
counted = {kind: sum(isinstance(result, kind) for case in cases for result in case.result) for kind in (Failure, Error, Skipped)}
# What the file says of itself is what is in it.
sums = {name: sum(getattr(suite, name) for suite in whole) for name in ("tests", "failures", "errors", "skipped")}
ok = sums == dict(tests=len(cases), failures=counted[Failure], errors=counted[Error], skipped=counted[Skipped])
print(json.dumps(dict(ok=ok, **sums, names=[case.name for case in cases], says=[result.text for case in cases for result in case.result])))
