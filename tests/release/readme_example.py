"""Write the README's example to a file: ``readme_example.py README.md example.py``."""

import re
import sys
from pathlib import Path


def main() -> None:
    """Find the one block of Python and write it."""
    text = Path(sys.argv[1]).read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    Path(sys.argv[2]).write_text(code, "utf-8")


if __name__ == "__main__":
    main()
