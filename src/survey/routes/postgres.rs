//! What a role of a PostgreSQL database may do. Questions are asked in a
//! read-only transaction; tables and functions are made only if that is
//! permitted, in transactions that are rolled back. There is no TLS here.

use super::kinds::{Ability, PostgresRoute};
use super::result::Finding;
use super::socket::{SocketError, SocketFolder};
use crate::deadline::Deadline;
use crate::engine::api::address::without_brackets;
use crate::engine::api::dial::resolve;
use crate::random::random_hex;
use crate::survey::surface::Answer;
use crate::survey::told::Told;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::error::Severity;
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
    mut finding: Finding,
    permitted: bool,
    deadline: &Deadline,
) -> Finding {
    let password = match &route.password_env {
        None => None,
        Some(name) => match std::env::var(name) {
            Ok(value) => Some(value),
            Err(_) => {
                let why = format!("variable {name} is not set");
                finding.call("connect", format!("not tried: {why}"));
                return finding.denied(Ability::Ddl, "nothing: it was not asked", why);
            }
        },
    };
    let mut asked = Asked {
        finding,
        left: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Err(error) => Err(error.to_string().into()),
        Ok(runtime) => runtime.block_on(async {
            let asking = ask(route, password.as_deref(), permitted, &mut asked);
            let asked = deadline.first(asking).await;
            asked.unwrap_or_else(|stopped| Err(stopped.to_string().into()))
        }),
    };
    let mut finding = asked.finding;
    finding.left = asked.left;
    match outcome {
        Ok(seen) => conclude(finding, seen, permitted),
        Err(why) => {
            let (user, host, port) = (&route.user, &route.host, route.port);
            let name = format!("connect {user}@{host}:{port}/{}", route.dbname);
            finding.call(name, why.clone());
            let proves = "nothing about the role: there was no session, or it was lost";
            finding.denied(Ability::Ddl, proves, why)
        }
    }
}

/// What was asked so far.
struct Asked {
    finding: Finding,
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
    made: Option<Result<(), Told>>,
}

async fn ask(
    route: &PostgresRoute,
    password: Option<&str>,
    permitted: bool,
    asked: &mut Asked,
) -> Result<Seen, Told> {
    let mut config = Config::new();
    config
        .dbname(&route.dbname)
        .user(&route.user)
        .application_name("tki-attest survey");
    if let Some(password) = password {
        config.password(password);
    }
    let connected = connect(route, password.is_some()).await;
    let (reader, writer) = connected.map_err(|error| error.to_string())?;
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

/// Why there is no connection to the server.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    /// Its name has no address.
    #[error("connect: {0}")]
    Resolve(#[source] io::Error),
    /// It does not take the connection.
    #[error(transparent)]
    Connection(#[from] io::Error),
    /// The password would go to the wrong process.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// A connection to the server, as two halves.
async fn connect(
    route: &PostgresRoute,
    with_password: bool,
) -> Result<(Reader, Writer), ConnectError> {
    let port = route.port;
    if route.host.starts_with('/') {
        let socket = SocketFolder::open(Path::new(&route.host))?;
        let stream = UnixStream::connect(socket.path.join(format!(".s.PGSQL.{port}"))).await;
        let stream = stream?;
        if with_password {
            socket.may_have_a_password(stream.peer_cred()?.uid())?;
        }
        let (reader, writer) = stream.into_split();
        return Ok((Box::new(reader), Box::new(writer)));
    }
    let found = resolve(without_brackets(&route.host), port).await;
    let found = found.map_err(ConnectError::Resolve)?;
    let (reader, writer) = TcpStream::connect(&found[..]).await?.into_split();
    Ok((Box::new(reader), Box::new(writer)))
}

async fn converse(
    route: &PostgresRoute,
    client: &Client,
    permitted: bool,
    asked: &mut Asked,
) -> Result<Seen, Told> {
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
async fn make(route: &PostgresRoute, client: &Client, asked: &mut Asked) -> Result<(), Told> {
    let random = random_hex::<8>().map_err(|error| error.to_string())?;
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
async fn query(client: &Client, text: &str, asked: &mut Asked) -> Result<Vec<Vec<String>>, Told> {
    let answer = client.simple_query(text).await.map_err(|e| explain(&e));
    let messages = match answer {
        Ok(messages) => messages,
        Err(why) => {
            asked.finding.call(text, why.clone());
            return Err(why);
        }
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut shown = String::new();
    for message in messages {
        let SimpleQueryMessage::Row(row) = message else {
            continue;
        };
        if rows.len() == MOST_ROWS {
            break;
        }
        let mut values = Vec::new();
        for (place, column) in row.columns().iter().enumerate() {
            let value = row.try_get(place).ok().flatten().unwrap_or("NULL");
            let _ = write!(shown, "{}={value} ", column.name());
            values.push(value.to_owned());
        }
        shown.push_str("| ");
        rows.push(values);
    }
    let told = match rows.len() {
        0 => Told::from("ok"),
        count => Told::from(format!("ok, rows: {count}")),
    };
    let shown = shown.trim_end_matches([' ', '|']);
    asked
        .finding
        .call(text, told.with_words("; ", shown, false));
    Ok(rows)
}

/// What went wrong: a code, and the server's words for it.
fn explain(error: &tokio_postgres::Error) -> Told {
    if let Some(server) = error.as_db_error() {
        let severity = server.parsed_severity().unwrap_or(Severity::Error);
        let code = server.code().code();
        return Told::from(format!("{severity} {code}")).with_words(": ", server.message(), false);
    }
    // Causes may repeat what the server said.
    let mut causes = Vec::new();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    Told::from(error.to_string()).with_words(": ", causes.join(": "), false)
}

fn conclude(mut finding: Finding, seen: Seen, permitted: bool) -> Finding {
    if seen.reads {
        finding.abilities.push(Ability::Read);
    }
    // What the file calls apart must be there.
    finding.isolated = seen.sandbox;
    match (seen.made, seen.may_create) {
        (Some(Ok(())), _) => finding.works(
            Ability::Ddl,
            "the role may CREATE TABLE and FUNCTION; both were rolled back",
        ),
        (Some(Err(why)), _) => finding.denied(Ability::Ddl, "cannot CREATE TABLE/FUNCTION", why),
        (None, false) => finding.denied(
            Ability::Ddl,
            "cannot CREATE TABLE/FUNCTION: no schema grants it",
            "the role has CREATE on no schema",
        ),
        (None, true) => {
            debug_assert!(!permitted);
            finding.answer = Answer::NotTried;
            finding.not_permitted("DDL in a transaction that is rolled back")
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
