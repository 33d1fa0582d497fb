//! Greeting an engine, which tells Podman from any other.

use crate::engine::api::raw::Raw;
use crate::engine::error::EngineError;
use hyper::Method;

/// What an engine says when it is greeted.
#[derive(Clone, Debug)]
pub struct Ping {
    /// Podman's version.
    pub version: String,
    /// The version of Docker's API that it speaks.
    pub api: (usize, usize),
}

/// Greets an engine: Podman gives its version, any other engine `None`.
pub async fn ping(raw: &Raw) -> Result<Option<Ping>, EngineError> {
    let answer = raw.ask(Method::GET, "/_ping", None).await?;
    let header = |name: &str| {
        let value = answer.headers.get(name)?.to_str().ok()?;
        Some(value.to_owned()).filter(|value| value.len() < 64)
    };
    let Some(version) = header("libpod-api-version") else {
        return Ok(None);
    };
    let api = header("api-version").unwrap_or_default();
    let (major, minor) = api.split_once('.').unwrap_or((&api, ""));
    Ok(Some(Ping {
        version,
        api: (major.parse().unwrap_or(0), minor.parse().unwrap_or(0)),
    }))
}
