//! What a role of a PostgreSQL database may do. Questions are asked in a
//! read-only transaction; tables and functions are made only if that is
//! permitted, in transactions that are rolled back. There is no TLS here.

use super::form::{Ability, PostgresRoute};
use super::result::RouteResult;
use crate::attest::run::random_hex;
use crate::survey::call::{Call, Redactor};
use crate::survey::http::resolve;
use crate::survey::surface::Answer;
use crate::survey::watch::{Stopped, TICK, Watch};
use std::fmt::Write as _;
use std::path::Path;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// The most bytes that are heard of a server.
const MOST_BYTES: u64 = 1 << 20;

/// The most rows that are kept of an answer.
const MOST_ROWS: usize = 100;

/// Who this is and what it may do, as the catalogue has it.
const ROLE: &str = "SELECT current_user, rolsuper, rolcreatedb, rolcreaterole, \
    pg_is_in_recovery() AS standby, current_setting('default_transaction_read_only') AS \
    read_only, has_database_privilege(current_database(), 'CREATE') AS may_create_schemas \
    FROM pg_roles WHERE rolname = current_user";

/// Schemas, and what may be done in each.
const SCHEMAS: &str = "SELECT nspname, has_schema_privilege(nspname, 'CREATE') AS may_create \
    FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' \
    ORDER BY nspname LIMIT 100";

/// Asks the database.
pub fn probe(
    route: &PostgresRoute,
    mut result: RouteResult,
    permitted: bool,
    watch: &Watch,
) -> RouteResult {
    let password = match &route.password_env {
        None => None,
        Some(name) => match std::env::var(name) {
            Ok(value) => Some(value),
            Err(_) => {
                let why = format!("variable {name} is not set");
                result
                    .calls
                    .push(Call::new("connect", format!("not tried: {why}")));
                return result.denied(Ability::Ddl, "nothing: it was not asked", why);
            }
        },
    };
    let redactor = Redactor::new(password.clone());
    let name = format!(
        "{}@{}:{}/{}",
        route.user, route.host, route.port, route.dbname
    );
    let mut asked = Asked {
        redactor,
        calls: Vec::new(),
        name,
        left: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Err(error) => Err(error.to_string()),
        Ok(runtime) => runtime.block_on(async {
            tokio::select! {
                outcome = ask(route, password.as_deref(), permitted, &mut asked, watch) => outcome,
                stopped = until_stopped(watch) => Err(stopped.to_string()),
            }
        }),
    };
    result.left = asked.left;
    if let Err(why) = &outcome {
        let call = format!("connect {}", asked.name);
        result.calls = asked.calls;
        result.calls.push(asked.redactor.call(call, why));
        let proves = "nothing about the role: there was no session, or it was lost";
        return result.denied(Ability::Ddl, proves, asked.redactor.clean(why, 300));
    }
    result.calls = asked.calls;
    conclude(result, &outcome.unwrap_or_default(), permitted)
}

async fn until_stopped(watch: &Watch) -> Stopped {
    loop {
        match watch.left() {
            Ok(_) => tokio::time::sleep(TICK).await,
            Err(stopped) => return stopped,
        }
    }
}

/// What was asked so far.
struct Asked {
    redactor: Redactor,
    calls: Vec<Call>,
    name: String,
    /// What could not be rolled back.
    left: Option<String>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Reading works.
    reads: bool,
    /// The catalogue lets it make something somewhere.
    may_create: bool,
    /// The schema that should be apart exists.
    sandbox: bool,
    /// A table and a function were made and rolled back; or why not.
    made: Option<Result<(), String>>,
}

async fn ask(
    route: &PostgresRoute,
    password: Option<&str>,
    permitted: bool,
    asked: &mut Asked,
    watch: &Watch,
) -> Result<Seen, String> {
    let mut config = Config::new();
    config
        .dbname(&route.dbname)
        .user(&route.user)
        .application_name("tki-attest survey");
    if let Some(password) = password {
        config.password(password);
    }
    let (reader, writer) = connect(route, watch).await?;
    // However much the server says, no more is heard.
    let stream = tokio::io::join(reader.take(MOST_BYTES), writer);
    let (client, connection) = config
        .connect_raw(stream, NoTls)
        .await
        .map_err(|error| explain(&error))?;
    let driving = tokio::spawn(async move {
        let _ = connection.await;
    });
    let seen = converse(route, &client, permitted, asked).await;
    drop(client);
    let _ = driving.await;
    seen
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection to the server, as two halves.
async fn connect(route: &PostgresRoute, watch: &Watch) -> Result<(Reader, Writer), String> {
    let port = route.port;
    if route.host.starts_with('/') {
        let path = Path::new(&route.host).join(format!(".s.PGSQL.{port}"));
        let stream = UnixStream::connect(path).await;
        let (reader, writer) = stream.map_err(|error| error.to_string())?.into_split();
        return Ok((Box::new(reader), Box::new(writer)));
    }
    let found = resolve(&format!("{}:{port}", route.host), watch);
    let found = found.map_err(|error| error.to_string())?;
    let stream = TcpStream::connect(&found[..]).await;
    let (reader, writer) = stream.map_err(|error| error.to_string())?.into_split();
    Ok((Box::new(reader), Box::new(writer)))
}

async fn converse(
    route: &PostgresRoute,
    client: &Client,
    permitted: bool,
    asked: &mut Asked,
) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let limits = "SET statement_timeout = '5s'; SET lock_timeout = '1s'; \
                  SET idle_in_transaction_session_timeout = '10s'";
    query(client, limits, asked).await?;
    query(client, "BEGIN TRANSACTION READ ONLY", asked).await?;
    let role = query(client, ROLE, asked).await;
    seen.reads = role.is_ok();
    let schemas = query(client, SCHEMAS, asked).await.unwrap_or_default();
    seen.may_create = schemas
        .iter()
        .any(|row| row.get(1).is_some_and(|may| may == "t"));
    if let Some(wanted) = &route.sandbox_schema {
        seen.sandbox = schemas
            .iter()
            .any(|row| row.first() == Some(wanted) && row.get(1).is_some_and(|may| may == "t"));
    }
    query(client, "ROLLBACK", asked).await?;
    if permitted {
        seen.made = Some(make(route, client, asked).await);
    }
    Ok(seen)
}

/// Makes a table and a function, each in a transaction that is rolled back.
async fn make(route: &PostgresRoute, client: &Client, asked: &mut Asked) -> Result<(), String> {
    let random = random_hex::<8>().map_err(|failure| failure.message)?;
    let name = match &route.sandbox_schema {
        Some(schema) => format!("{}.tki_attest_survey_{random}", quoted(schema)),
        None => format!("tki_attest_survey_{random}"),
    };
    let statements = [
        format!("CREATE TABLE {name} (probe integer)"),
        format!("CREATE FUNCTION {name}() RETURNS integer LANGUAGE sql AS 'SELECT 1'"),
    ];
    let mut first = Ok(());
    for statement in statements {
        query(client, "BEGIN", asked).await?;
        let made = query(client, &statement, asked).await;
        // Whatever came of it, it is undone.
        query(client, "ROLLBACK", asked).await?;
        first = first.and(made.map(drop));
    }
    let left = format!(
        "SELECT to_regclass('{}') IS NULL AS gone",
        name.replace('\'', "''")
    );
    match query(client, &left, asked)
        .await?
        .first()
        .map(Vec::as_slice)
    {
        Some([gone]) if gone == "t" => first,
        _ => {
            asked.left = Some(format!("table {name}"));
            Err("the probe table is still there".into())
        }
    }
}

/// A name as SQL takes it, whatever is in it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Asks, keeps the call, and gives the rows.
async fn query(client: &Client, text: &str, asked: &mut Asked) -> Result<Vec<Vec<String>>, String> {
    let answer = client.simple_query(text).await;
    let (shown, rows) = match &answer {
        Err(error) => (explain(error), Err(explain(error))),
        Ok(messages) => {
            let mut rows: Vec<Vec<String>> = Vec::new();
            let mut shown = String::new();
            for message in messages {
                match message {
                    SimpleQueryMessage::Row(row) if rows.len() < MOST_ROWS => {
                        let mut values = Vec::new();
                        for (place, column) in row.columns().iter().enumerate() {
                            let value = row.try_get(place).ok().flatten().unwrap_or("NULL");
                            let _ = write!(shown, "{}={value} ", column.name());
                            values.push(value.to_owned());
                        }
                        shown.push_str("| ");
                        rows.push(values);
                    }
                    SimpleQueryMessage::CommandComplete(_) if rows.is_empty() => {
                        shown = "ok".into();
                    }
                    _ => {}
                }
            }
            (shown.trim_end_matches([' ', '|']).to_owned(), Ok(rows))
        }
    };
    asked.calls.push(asked.redactor.call(text, shown));
    rows
}

/// An error in the server's words.
fn explain(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(server) => {
            let code = server.code().code();
            format!("{} {code}: {}", server.severity(), server.message())
        }
        None => {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                let _ = write!(text, ": {cause}");
                source = cause.source();
            }
            text
        }
    }
}

fn conclude(mut result: RouteResult, seen: &Seen, permitted: bool) -> RouteResult {
    if seen.reads {
        result.abilities.push(Ability::Read);
    }
    // What the file calls apart must be there.
    result.isolated = seen.sandbox;
    match (&seen.made, seen.may_create) {
        (Some(Ok(())), _) => result.works(
            Ability::Ddl,
            "the role may CREATE TABLE and FUNCTION; both were rolled back",
        ),
        (Some(Err(why)), _) => {
            let why = Redactor::default().clean(why, 300);
            result.denied(Ability::Ddl, "cannot CREATE TABLE/FUNCTION", why)
        }
        (None, false) => result.denied(
            Ability::Ddl,
            "cannot CREATE TABLE/FUNCTION: no schema grants it",
            "the role has CREATE on no schema",
        ),
        (None, true) => {
            debug_assert!(!permitted);
            result.answer = Answer::NotTried;
            result.not_permitted("DDL in a transaction that is rolled back")
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_quoted() {
        assert_eq!(
            super::quoted("a\"; DROP TABLE x; --"),
            "\"a\"\"; DROP TABLE x; --\""
        );
    }
}
