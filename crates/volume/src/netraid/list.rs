//! What one member has, page by page: the stretches of a group that hold stamps there, or the requests that took effect.

use super::answer::{Answer, FromAnswer};
use super::operate::{Context, Operate, retry_delay};
use super::outcome::{NoChild, Page, Progress};
use base::{GroupId, Payload, RequestId, VolumeId};
use core::time::Duration;
use wire::{GroupView, IoError, Message};

/// What is asked for, from where on.
#[derive(Clone, Copy, Debug)]
pub enum Listed {
    Stretches(Option<(VolumeId, u64)>),
    /// Parts of requests that took effect.
    Completions(Option<(RequestId, u64)>),
}

/// Asks for one page.
pub struct ListOperation {
    group: GroupId,
    slot: u8,
    listed: Listed,
    attempt: u32,
}

impl ListOperation {
    /// Of the member at `slot`.
    pub fn new(group: GroupId, slot: u8, listed: Listed) -> ListOperation {
        ListOperation { group, slot, listed, attempt: 0 }
    }
}

/// What the member says: a page, or the view under which it would answer.
pub struct PageAnswer(Result<Page, Option<GroupView>>);

impl FromAnswer for PageAnswer {
    fn from_answer(answer: Answer) -> Option<PageAnswer> {
        match answer {
            Answer::Stretches(page) => Some(PageAnswer(page.map(Page::Stretches))),
            Answer::Completions(page) => Some(PageAnswer(page.map(Page::Completions))),
            _ => None,
        }
    }
}

type Listing = Progress<Result<Page, IoError>>;

impl Operate for ListOperation {
    type Answer = PageAnswer;
    type Child = NoChild;
    type Outcome = Result<Page, IoError>;

    fn start(&mut self, cx: &mut Context<'_>) -> Listing {
        let (view, group) = (cx.views.view(self.group), self.group);
        if !view.writers().has(self.slot) {
            return Progress::Ended(Err(IoError::Failed));
        }
        let (number, listed) = (view.number, self.listed);
        cx.call(&view, self.slot, Payload::new(), |operation| match listed {
            Listed::Stretches(after) => Message::Inventory { operation, group, view: number, after },
            Listed::Completions(after) => Message::GetCompletions { operation, group, view: number, after },
        });
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, _slot: u8, answer: PageAnswer) -> Listing {
        match answer.0 {
            Ok(page) => Progress::Ended(Ok(page)),
            Err(view) => {
                cx.on_stale(self.group, view);
                Progress::WaitsFor(Duration::from_millis(20 << self.attempt.min(5)))
            }
        }
    }

    fn on_child(&mut self, _: &mut Context<'_>, child: NoChild) -> Listing {
        match child {}
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Listing {
        self.attempt += 1;
        cx.forget_calls();
        self.start(cx)
    }

    fn group(&self) -> GroupId {
        self.group
    }
}
