"""What the server answers: the pages of a history, reports of runs, two kernels beside each other, and entries on
changes by those who have a token.

Pages are those of the static history, with forms. All links are relative, so that a proxy may put the site anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kdyno.base.errors import KdynoError, UserError
from kdyno.judge.history.model import HistoryAxis
from kdyno.judge.history.points import kernel_named
from kdyno.judge.history.triage import change_named, triage_of
from kdyno.report import html
from kdyno.report.history_html import INDEX, HistoryPages, Viewer
from kdyno.report.served.errors import FormUnfit, NotSignedIn, PageMissing, WrongToken
from kdyno.report.served.live_history import LiveHistory
from kdyno.report.served.simple_pages import error_page, runs_page, sign_in_page
from kdyno.report.served.tokens import author_of
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store
from kdyno.store.url import StoreUrl
from kdyno.understand.reported_run import reported_run

COOKIE = "kdyno-token"
COOKIE_SECONDS = 30 * 24 * 3600
MOST_FORM_BYTES = 20_000
RUN_PAGE = re.compile(r"run-([0-9a-f]{12,64})\.html")
REPORTS_KEPT = 8
"""Reports of runs that stay in memory."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}


class Site:
    """The answers for one store."""

    def __init__(self, store: StoreUrl, artefacts: Artefacts, tokens: Mapping[str, str], *, is_secure: bool) -> None:
        self._store, self._artefacts, self._tokens, self._is_secure = store, artefacts, tokens, is_secure
        self._history = LiveHistory(store)
        self._report = lru_cache(REPORTS_KEPT)(self._render_report)

    def application(self, hosts: list[str]) -> ASGIApp:
        """Return the server's application, for requests to these names of the host alone: a foreign page whose name
        leads to this address is not answered.
        """
        routes = [
            Route("/", self._page),
            Route("/runs", self._runs),
            Route("/compare", self._compare),
            Route("/history.json", self._json),
            Route("/sign-in", self._sign_in_form),
            Route("/sign-in", self._sign_in, methods=["POST"]),
            Route("/sign-out", self._sign_out, methods=["POST"]),
            Route("/triage", self._triage, methods=["POST"]),
            Route("/favicon.ico", _no_icon),
            Route("/{page}", self._page),
        ]
        middleware = [Middleware(_WithHeaders), Middleware(TrustedHostMiddleware, allowed_hosts=hosts)]
        return Starlette(routes=routes, middleware=middleware, exception_handlers={KdynoError: self._error, 404: _lost})

    # Pages. Functions that are not `async` run in threads.

    def _page(self, request: Request) -> Response:
        name = request.path_params.get("page", INDEX)
        if run := RUN_PAGE.fullmatch(name):
            return HTMLResponse(self._report_of(run[1]))
        pages = HistoryPages(self._history.current())
        if name not in pages.names:
            raise PageMissing(path=name)
        return HTMLResponse(pages.render(name, self._viewer(request)))

    def _compare(self, request: Request) -> Response:
        pages = HistoryPages(self._history.current())
        axis = _axis(pages, request.query_params.get("axis", ""))
        before, after = (kernel_named(axis, request.query_params.get(key, "")) for key in ("before", "after"))
        return HTMLResponse(pages.compare(axis, before, after, self._viewer(request)))

    def _runs(self, request: Request) -> Response:
        with Store(self._store, "read") as store:
            return HTMLResponse(runs_page(store.runs(), self._viewer(request)))

    def _json(self, request: Request) -> Response:  # noqa: ARG002
        return JSONResponse(self._history.current().report.model_dump(mode="json"))

    def _report_of(self, run: str) -> str:
        """Return the report of a run; of a run that gets more boots each time anew."""
        with Store(self._store, "read") as store:
            boots = len(store.ends_in_place(store.run(run).id))
        return self._report(run, boots)

    def _render_report(self, run: str, boots: int) -> str:  # noqa: ARG002
        with Store(self._store, "read") as store:
            return html.render(reported_run(store, store.run(run).id, self._artefacts, analysed=True), self._artefacts)

    # Writing.

    def _sign_in_form(self, request: Request) -> Response:
        return HTMLResponse(sign_in_page(self._viewer(request), writable=bool(self._tokens)))

    async def _sign_in(self, request: Request) -> Response:
        token = (await self._form(request)).get("token", "")
        if author_of(token, self._tokens) is None:
            raise WrongToken
        answer = _to("./")
        answer.set_cookie(
            COOKIE, token, max_age=COOKIE_SECONDS, httponly=True, samesite="strict", secure=self._is_secure
        )
        return answer

    async def _sign_out(self, request: Request) -> Response:
        await self._form(request)
        answer = _to("./")
        answer.delete_cookie(COOKIE)
        return answer

    async def _triage(self, request: Request) -> Response:
        form = await self._form(request)
        author = self._viewer(request).author
        if author is None:
            raise NotSignedIn
        change = await run_in_threadpool(self._record, form, author)
        page = form.get("page", "")
        return _to(f"{page if re.fullmatch(r'[0-9a-z-]+[.]html', page) else './'}#change-{change}")

    def _record(self, form: Mapping[str, str], author: str) -> str:
        change = change_named(self._history.current(), form.get("change", ""))
        texts = {name: form.get(name, "") for name in ("owner", "note")}
        entry = triage_of(change, form.get("state", ""), author=author, **texts)
        with Store(self._store, "change") as store:
            store.add_triage(entry)
        return change.id

    async def _form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form of this site. Raise FormUnfit."""
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            raise FormUnfit(why="another site sent it")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_FORM_BYTES:
                raise FormUnfit(why=f"it has more than {MOST_FORM_BYTES:,} bytes")
        try:
            fields = parse_qs(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=20)
        except ValueError as error:
            raise FormUnfit(why=str(error)) from None
        return {name: values[-1] for name, values in fields.items()}

    def _viewer(self, request: Request) -> Viewer:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        token = bearer.strip() if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
        return Viewer(author_of(token, self._tokens))

    def _error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, KdynoError)
        other = HTTPStatus.BAD_REQUEST if isinstance(error, UserError) else HTTPStatus.INTERNAL_SERVER_ERROR
        status = STATUS.get(type(error), other)
        return HTMLResponse(error_page(error, self._viewer(request)), status)


STATUS: dict[type[Exception], HTTPStatus] = {
    PageMissing: HTTPStatus.NOT_FOUND,
    NotSignedIn: HTTPStatus.UNAUTHORIZED,
    WrongToken: HTTPStatus.FORBIDDEN,
}


async def _no_icon(request: Request) -> Response:  # noqa: ARG001
    """Every browser asks for one."""
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _axis(pages: HistoryPages, name: str) -> HistoryAxis:
    axis = next((axis for axis in pages.history.axes if axis.id == name), None)
    if axis is None:
        raise PageMissing(path=f"of the axis {name[:80]}")
    return axis


def _to(page: str) -> Response:
    """Return the answer that leads a browser to another page after a form."""
    return RedirectResponse(page, HTTPStatus.SEE_OTHER)


async def _lost(request: Request, error: Exception) -> Response:  # noqa: ARG001
    page = error_page(PageMissing(path=request.url.path), Viewer(None))
    return HTMLResponse(page, HTTPStatus.NOT_FOUND)


class _WithHeaders:
    """Adds headers by which browsers keep pages apart from those of others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, with_headers)
