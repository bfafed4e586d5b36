//! What surrounds every page: navigation, what is in force, the button that ends all chaos, and errors.

use maud::{DOCTYPE, Markup, html};

use crate::api::ApiError;
use crate::visit::{PageContent, Visit};
use crate::{assets, in_force, text};

/// The navigation: path and name of each page.
const NAV: [(&str, &str); 6] = [
    ("/live", "Live"),
    ("/chaos", "Chaos"),
    ("/profiles", "Profiles"),
    ("/runs", "Runs"),
    ("/recordings", "Recordings"),
    ("/connect", "Connect"),
];

/// Scripts may not evaluate text or write styles, and errors are shown where the response would be.
const HTMX: &str = r#"{"includeIndicatorStyles":false,"allowEval":false,"selfRequestsOnly":true,"historyCacheSize":0,"responseHandling":[{"code":"204","swap":false},{"code":"...","swap":true}]}"#;

fn head(title: &str, files: &[&str]) -> Markup {
    let ours = ["htmx.js", "htmx-sse.js", "idiomorph.js", "squall.js"];
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta name="htmx-config" content=(HTMX);
        title { (title) " · Squall" }
        link rel="icon" href="data:,";
        link rel="stylesheet" href=(assets::path("squall.css"));
        @for file in files.iter().filter(|file| assets::is_style(file)) {
            link rel="stylesheet" href=(assets::path(file));
        }
        @for file in ours.iter().chain(files.iter().filter(|file| !assets::is_style(file))) {
            script src=(assets::path(file)) defer {}
        }
    }
}

/// A whole page.
pub(crate) fn page(visit: &Visit, page: &PageContent) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (head(&page.title, page.assets)) }
            body hx-ext="sse,morph" {
                a.skip href="#main" { "Skip to the page" }
                header.bar {
                    a.brand href="/live" { "Squall" }
                    div #status role="status" aria-label="Chaos in force" hx-get="/status" hx-trigger="every 2s, chaos from:body"
                        hx-swap="morph:innerHTML" { (in_force::summary(&visit.in_force)) }
                    @if visit.caller.may_change() {
                        form method="post" action="/stop" hx-post="/stop" hx-target="#status" hx-swap="innerHTML" {
                            (csrf(visit))
                            button.stop { "Stop all chaos" }
                            @if visit.caller.fleet { button.stop name="fleet" value="true" { "Stop in all daemons" } }
                        }
                    }
                }
                nav aria-label="Pages" {
                    ul {
                        @for (path, name) in NAV {
                            li { a href=(path) aria-current=[(path == page.nav).then_some("page")] { (name) } }
                        }
                        li { a href="/docs" { "API" } }
                    }
                    @if let Some(token) = &visit.caller.token {
                        form.who method="post" action="/logout" {
                            (csrf(visit))
                            span { (token) " · " (visit.caller.role())
                                @if visit.caller.workspace != "default" { " · " (visit.caller.workspace) } }
                            button.quiet { "Log out" }
                        }
                    }
                }
                main #main tabindex="-1" {
                    h1 { (page.title) }
                    (page.body)
                }
            }
        }
    }
}

/// A page for visitors without a role: login and its errors.
pub(crate) fn bare(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (head(title, &[])) }
            body {
                header.bar { a.brand href="/live" { "Squall" } }
                main #main.narrow {
                    h1 { (title) }
                    (body)
                }
            }
        }
    }
}

/// The field that each form needs.
pub(crate) fn csrf(visit: &Visit) -> Markup {
    html! { input type="hidden" name="csrf" value=(visit.csrf); }
}

/// An error, as the API describes it.
pub(crate) fn problem(error: &ApiError) -> Markup {
    html! {
        div.problem role="alert" {
            @let others = &error.errors;
            @if !others.iter().any(|one| one.detail == error.detail) { p { (text::marked(&error.detail)) } }
            @if !others.is_empty() {
                ul {
                    @for one in others {
                        li {
                            @if let Some(place) = &one.pointer { code { (place) } ": " }
                            (text::marked(&one.detail))
                        }
                    }
                }
            }
        }
    }
}

/// A whole page with an error.
pub(crate) fn failed(visit: &Visit, error: &ApiError) -> Markup {
    let body = problem(error);
    if visit.caller.role().is_empty() {
        return bare(&error.title, &body);
    }
    page(
        visit,
        &PageContent {
            title: error.title.clone(),
            nav: "",
            assets: &[],
            body,
        },
    )
}
