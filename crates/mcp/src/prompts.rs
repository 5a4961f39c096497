//! Prompts: questions that users ask, as steps for the model.

use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use crate::arguments;
use crate::failure::Failure;

/// A prompt: its name, description, arguments and text. In the text, `{NAME}` stands for the value of an argument.
struct Template {
    name: &'static str,
    about: &'static str,
    /// Arguments. Each has a name, a description, and a flag that is true if the argument is required.
    arguments: &'static [(&'static str, &'static str, bool)],
    text: &'static str,
}

const TEMPLATES: [Template; 3] = [
    Template {
        name: "why-did-it-lag",
        about: "Explains why a machine lagged",
        arguments: &[
            ("trace", "handle or file name of the trace", false),
            ("complaint", "what the user noticed, and when", false),
        ],
        text: "Find out why the machine lagged. Trace: {trace}. Complaint: {complaint}.\n\
               1. If the trace is not given, call `traces`.\n\
               2. Call `explain`, about the process or time of the complaint if it names one.\n\
               3. Call `finding` for the first finding. State the cause, the delay and what to do, with the \
               numbers of the evidence.\n\
               4. Say how sure the answer is: doubts, and causes that were not recorded.\n\
               5. If the trace cannot answer, say what to record.",
    },
    Template {
        name: "before-and-after",
        about: "Tells whether a change helped",
        arguments: &[
            ("before", "trace before the change", true),
            ("after", "trace after the change", true),
        ],
        text: "Find out what changed between the traces {before} and {after}.\n\
               1. Call `compare`. If the work differs, call it again with `by`.\n\
               2. Report what takes more and less time, with intervals. If chance may explain a change, say so.\n\
               3. Explain the greatest change: `explain` on both traces, then `finding`.\n\
               4. One trace on each side shows that the traces differ, not that the change is the reason. Say so, \
               and how many traces would be enough.",
    },
    Template {
        name: "what-should-i-record",
        about: "Says how to record a trace that can answer a question",
        arguments: &[("question", "what the user wants to find out", true)],
        text: "Find out how to record a trace for this question: {question}.\n\
               1. If there is a trace already, call `explain`: `missing` and `record` say what it lacks.\n\
               2. List the resources `laglab://record/…` and read the one whose title fits the question.\n\
               3. Give the user its steps. You cannot record yourself.",
    },
];

/// Returns all prompts in a fixed order.
pub(crate) fn list() -> Vec<Prompt> {
    let prompts = TEMPLATES.iter().map(|template| {
        let arguments = template.arguments.iter().map(|(name, about, required)| {
            let argument = PromptArgument::new(*name).with_description(*about);
            argument.with_required(*required)
        });
        Prompt::new(
            template.name,
            Some(template.about),
            Some(arguments.collect()),
        )
    });
    prompts.collect()
}

/// Returns a prompt with its arguments.
pub(crate) fn get(name: &str, given: Option<&JsonObject>) -> Result<GetPromptResult, Failure> {
    let template = TEMPLATES.iter().find(|template| template.name == name);
    let template = template.ok_or_else(|| Failure::unknown("there is no prompt with this name"))?;
    let mut text = template.text.to_owned();
    for (name, _, required) in template.arguments {
        let value = given
            .and_then(|given| given.get(*name))
            .and_then(|value| value.as_str());
        let value = match (value, required) {
            (Some(value), _) => arguments::name(name, value)?,
            (None, false) => "not given".to_owned(),
            (None, true) => {
                return Err(Failure::arguments(format!(
                    "the prompt needs the argument `{name}`"
                )));
            }
        };
        text = text.replace(&format!("{{{name}}}"), &value);
    }
    let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    Ok(result.with_description(template.about))
}
