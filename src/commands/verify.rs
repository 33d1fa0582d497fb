//! `tki-attest verify`.

use crate::cli::{Common, VerifyArgs};
use crate::commands::error::CommandError;
use crate::commands::inputs::inputs;
use crate::commands::{output, results};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report;
use crate::report::table::Paint;
use crate::report::verification::{Printer, VerifyFormat};
use crate::trust::agent::PATIENCE;
use crate::trust::keys::Key;
use crate::verify::{Bundle, Worst, exit, many, pipeline};
use tki_verify::disk::BundleError;

/// Verifies every bundle; the worst one decides the exit code.
pub fn execute(args: &VerifyArgs, common: Common) -> Result<Exit, Failure> {
    let inputs = inputs(&args.flags, args.verify_time)?;
    let key = args.attest.as_deref();
    let key = key.map(|path| Key::open(path, args.passphrase.passphrase.as_ref(), PATIENCE));
    let key = key.transpose()?;
    let paint = Paint::stdout(common.color);
    let writes = args.binding.is_some() || args.verification.is_some() || key.is_some();
    let several = args.bundles.len() > 1 || args.bundles[0].is_dir();
    if writes && several {
        return Err(CommandError::Several.into());
    }
    if !several {
        let bundle = Bundle::read(&args.bundles[0])?;
        let opened = pipeline::open(&bundle, &inputs)?;
        let verification = pipeline::conclude(&opened, &bundle.artifacts, &inputs);
        if !(common.quiet && args.format == VerifyFormat::Text) {
            let text = Printer::new(args.format, common.verbose, paint).one(&verification)?;
            output::print(&text)?;
        }
        results::write(args, key.as_ref(), &opened, &verification, &inputs)?;
        return Ok(exit(verification.decision));
    }
    let candidates = many::bundles(&args.bundles)?;
    let jobs = match args.jobs {
        Some(jobs) => jobs as usize,
        None => std::thread::available_parallelism().map_or(1, |count| count.get()),
    };
    let silent = common.quiet && args.format == VerifyFormat::Text;
    let mut printer = Printer::new(args.format, common.verbose, paint);
    let mut worst = Worst::default();
    many::each(&candidates, &inputs, jobs, |path, result| {
        let is_other = matches!(result, Err(BundleError::Other { .. }));
        let result = result.map_err(Failure::from);
        if !is_other {
            worst.add(&result);
        }
        if let Err(failure) = &result {
            report::failure::print(failure, Paint::stderr(common.color));
        }
        if silent || is_other {
            return Ok::<(), Failure>(());
        }
        output::print(&printer.next(path, &result)?)?;
        Ok(())
    })?;
    if !silent {
        output::print(&printer.end(worst.exit()))?;
    }
    if worst.is_nothing() {
        return Err(CommandError::Nothing.into());
    }
    Ok(worst.exit())
}
