from typing import Any, TypeVar

Method = TypeVar("Method")

class CallbackSupportMixin:
    def set_callbacks(self, *callbacks: Any) -> Any: ...

def with_callbacks(method: Method) -> Method: ...
