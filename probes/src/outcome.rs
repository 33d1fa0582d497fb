//! What one operation came to, before it is tied to a phase and a name.

use crate::sys::{Errno, Result};
use alloc::string::String;
use tki_evidence::errno;
use tki_evidence::observation::{Observation, Phase, State};

/// What one operation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    state: State,
    step: Option<&'static str>,
    returned: Option<i64>,
    errno: Option<Errno>,
    signal: Option<i32>,
    value: Option<String>,
}

impl Outcome {
    fn of(state: State) -> Self {
        Self {
            state,
            step: None,
            returned: None,
            errno: None,
            signal: None,
            value: None,
        }
    }

    /// A call that must not succeed. Errnos in `reached` mean that it passed
    /// every check and failed only on a deliberately impossible argument.
    pub fn attempt(result: Result<impl TryInto<i64>>, reached: &[Errno]) -> Self {
        match result {
            Ok(value) => Self {
                returned: value.try_into().ok(),
                ..Self::of(State::Allowed)
            },
            Err(errno) => Self {
                returned: Some(-1),
                errno: Some(errno),
                ..Self::of(if reached.contains(&errno) {
                    State::Allowed
                } else {
                    State::Denied
                })
            },
        }
    }

    /// A call with arguments that cannot work: any answer but these three
    /// refusals means that nothing stood in the way.
    pub fn reach(result: Result) -> Self {
        match result {
            Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS) | Ok(_) => Self::attempt(result, &[]),
            Err(errno) => Self::attempt(result, &[errno]),
        }
    }

    /// The attempt ended its process by a signal that is a refusal here.
    pub fn killed(number: i32) -> Self {
        Self {
            signal: Some(number),
            ..Self::of(State::Denied)
        }
    }

    /// A refusal by an earlier call without which the operation cannot be.
    pub fn denied_at(step: &'static str, errno: Errno) -> Self {
        Self {
            step: Some(step),
            ..Self::attempt(Err::<i64, _>(errno), &[])
        }
    }

    /// The operation needs something that could not be had, for a reason that
    /// proves nothing.
    pub fn not_reached(step: &'static str, errno: Errno) -> Self {
        Self {
            step: Some(step),
            returned: Some(-1),
            errno: Some(errno),
            ..Self::of(State::NotReached)
        }
    }

    /// A fact was read.
    pub fn fact(value: String) -> Self {
        Self {
            value: Some(value),
            ..Self::of(State::Allowed)
        }
    }

    /// Whether it was refused.
    pub fn is_denied(&self) -> bool {
        self.state == State::Denied
    }

    /// The fact that was read.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// A fact could not be read.
    pub fn unreadable(errno: Errno) -> Self {
        Self::attempt(Err::<i64, _>(errno), &[])
    }

    /// The probe itself went wrong.
    pub fn error(why: impl Into<String>) -> Self {
        Self {
            value: Some(why.into()),
            ..Self::of(State::Error)
        }
    }

    /// The call ended the process that made it. Only SIGSYS is a refusal.
    pub fn signal(number: i32) -> Self {
        const SIGSYS: i32 = 31;
        Self {
            signal: Some(number),
            ..Self::of(if number == SIGSYS {
                State::Denied
            } else {
                State::Error
            })
        }
    }

    /// As it goes on the wire.
    pub fn observed(self, phase: Phase, operation: &str) -> Observation {
        Observation {
            step: self.step.map(String::from),
            returned: self.returned,
            errno: self.errno.map(|number| errno::name(number.0)),
            signal: self.signal.map(errno::signal_name),
            value: self.value,
            ..Observation::new(phase, operation, self.state)
        }
    }
}
