"""Write the README's example to a file: ``readme_example.py README.md example.py``."""

import re
import sys
from pathlib import Path

(code,) = re.findall(r"```python\n(.*?)```", Path(sys.argv[1]).read_text("utf-8"), flags=re.DOTALL)
Path(sys.argv[2]).write_text(code, "utf-8")
