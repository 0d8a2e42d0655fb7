/** Faults while a prompt is submitted to the server. A run that has reached a later point was submitted, so they cannot occur there. */
import { LONG_MS } from '../comfy-test-bounds.ts'
import { ALWAYS, type FaultRow } from './row.ts'

const SUBMITTED = 'a run that the server has begun has been submitted: what is wrong with submits no longer concerns it'
const LATER = { running: SUBMITTED, finishing: SUBMITTED }
const NONE_BEGUN = { queued: 1, running: 1, finishing: 1 }
const again = { vanishedMs: 1, pollMaxMs: 2 }

export const SUBMIT_ROWS: readonly FaultRow[] = [
  {
    name: 'a lost reply to the submit',
    faults: { dropPromptReply: 1 },
    since: 'submit',
    ends: 'succeeded',
    // It is found again, whenever that is.
    bounds: { vanishedMs: LONG_MS },
    within: { vanishedMs: 1, pollMaxMs: 1 },
  },
  {
    name: 'a lost reply of a server that gives its own ids',
    faults: { dropPromptReply: 1, ignorePromptId: true },
    since: 'submit',
    // The prompt cannot be found again: its result is ignored, and the next attempt counts.
    ends: 'moved',
    within: again,
  },
  {
    name: 'submits that never arrive',
    faults: { dropPrompt: ALWAYS },
    since: 'submit',
    ends: 'moved',
    never: LATER,
    executions: NONE_BEGUN,
    within: again,
  },
  {
    name: 'a server that is busy, twice',
    faults: { busyPrompt: 2 },
    since: 'submit',
    ends: 'succeeded',
    within: { pollMaxMs: 3 },
  },
  {
    name: 'a server that stays busy',
    faults: { busyPrompt: ALWAYS },
    since: 'submit',
    ends: 'moved',
    never: LATER,
    executions: NONE_BEGUN,
    within: { unreachableMs: 1, pollMaxMs: 2 },
  },
  {
    name: 'nonsense in reply to the submit',
    faults: { garbage: { '/prompt': ALWAYS } },
    since: 'submit',
    ends: 'moved',
    never: LATER,
    executions: NONE_BEGUN,
    within: again,
  },
  {
    name: 'no reply to the submit',
    faults: { mute: { '/prompt': ALWAYS } },
    since: 'submit',
    ends: 'moved',
    never: LATER,
    executions: NONE_BEGUN,
    within: { unreachableMs: 1, callMs: 1, pollMaxMs: 2 },
  },
  {
    name: 'a server that gives its own ids',
    faults: { ignorePromptId: true },
    since: 'birth',
    ends: 'succeeded',
    within: { pollMaxMs: 1 },
  },
  {
    name: 'a graph that is accepted in part',
    faults: { partialAcceptance: true },
    since: 'submit',
    ends: 'failed:invalid_workflow',
    isKept: true,
    never: LATER,
    executions: { queued: 0, running: 1, finishing: 1 },
    within: { pollMaxMs: 1, callMs: 1 },
  },
  {
    name: 'an upload that fails, once',
    faults: { uploadError: 1 },
    since: 'submit',
    graph: 'loaded',
    ends: 'succeeded',
    within: { fileRetryMs: 1, pollMaxMs: 1 },
  },
  {
    name: 'uploads that fail',
    faults: { uploadError: ALWAYS },
    since: 'submit',
    graph: 'loaded',
    ends: 'moved',
    never: LATER,
    executions: NONE_BEGUN,
    within: { fileRetryMs: 7, pollMaxMs: 2 },
  },
]
