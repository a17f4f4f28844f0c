//! From one request of the file to a step: its name, its server and its think time. What it sends depends on its
//! protocol.

use std::io;
use std::path::Path;

use database::sql::Statement;
use toml::Spanned;

use crate::format::{File, Journey, Request};
use crate::place::{Slip, Sources, Span, did_you_mean};
use crate::plan::{Action, Server, Step};
use crate::scope::Scope;
use crate::think::Think;
use crate::{sql, web};

/// What the steps of one journey or single request have in common.
pub(crate) struct Common<'a> {
    pub file: &'a File,
    pub sources: &'a Sources,
    pub targets: &'a [Server],
    pub journey: Option<&'a Journey>,
    /// Whether it is the last step.
    pub last: bool,
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
}

/// Compiles a request. The statements of a database are added to `statements`.
pub(crate) fn compile(
    request: &Spanned<Request>,
    common: &Common<'_>,
    scope: &mut Scope<'_>,
    statements: &mut Vec<Statement>,
) -> Result<Step, Slip> {
    let own = request.get_ref();
    let journeys_target = common.journey.and_then(|journey| journey.target.as_ref());
    let target = target_of(own.target.as_ref(), journeys_target, common.targets, &request.span())?;
    let (action, by_content) = if let Some(kind) = common.targets[usize::from(target)].address.database_kind()
    {
        let step = sql::compile(request, common, scope, (kind, statements))?;
        let name = statements[usize::from(step.first)].with_marks(kind);
        (Action::Sql(step), name)
    } else {
        sql::refuse(own)?;
        let step = web::compile(request, target, common, scope)?;
        let written = own.path.as_ref().map_or("/", |path| path.get_ref().as_str());
        let name = format!("{} {written}", step.method);
        (Action::Web(step), name)
    };
    let name = own.name.as_ref().map_or(by_content, |name| name.get_ref().clone());
    Ok(Step { name, target, think: think(own, common)?, think_draw: scope.next_draw(), action })
}

/// The server of a request: its own, its journey's, or the only one.
fn target_of(
    own: Option<&Spanned<String>>,
    journeys: Option<&Spanned<String>>,
    targets: &[Server],
    span: &Span,
) -> Result<u16, Slip> {
    let names = || targets.iter().map(|target| target.name.as_str());
    let Some(given) = own.or(journeys) else {
        if targets.len() == 1 {
            return Ok(0);
        }
        let list = names().collect::<Vec<_>>().join(", ");
        return Err(Slip::new(span, format!("which server? there are several; add target = one of {list}")));
    };
    let found = names().position(|name| name == given.get_ref());
    found.and_then(|place| u16::try_from(place).ok()).ok_or_else(|| {
        let meant = did_you_mean(given.get_ref(), names());
        Slip::new(&given.span(), format!("there is no target `{}`{meant}", given.get_ref()))
    })
}

fn think(own: &Request, common: &Common<'_>) -> Result<Think, Slip> {
    if common.last {
        return match &own.think {
            Some(think) if common.journey.is_some() => {
                let what = "no step follows the last one; for think time between journeys use run.think";
                Err(Slip::new(&think.span(), what))
            }
            _ => Ok(Think::None),
        };
    }
    let given = own.think.as_ref().or_else(|| common.journey.and_then(|journey| journey.think.as_ref()));
    match given {
        None => Ok(Think::None),
        Some(given) => {
            let what = |error| format!("{error}; a wait is written 1s, 1s..3s or exp:2s");
            Think::parse(given.get_ref()).map_err(|error| Slip::new(&given.span(), what(error)))
        }
    }
}
