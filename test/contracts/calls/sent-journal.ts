/** How every journal of calls that may have reached their provider behaves. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { HeldCall, UnfinishedCall } from '../../../src/domain/models/calls/call-store.ts'
import type { SentJournal } from '../../../src/domain/models/calls/live-calls.ts'

/** One journal, as the processes that use it one after the other see it. */
export interface JournalUnderTest {
  /** A new process opens it and has dealt with what it found; whatever process had it before is dead. */
  reopen(): SentJournal
  /** A call that was let in. */
  letIn(name: string): Promise<HeldCall>
  /** The call, as a process finds that takes it over. */
  takenOver(call: HeldCall): Promise<Pick<UnfinishedCall, 'ref' | 'isSent'>>
}

export interface JournalOpener {
  /** Calls `body` with a journal in which nothing is recorded. */
  withJournal(body: (journal: JournalUnderTest) => Promise<void>): Promise<void>
}

export function testSentJournal({ withJournal }: JournalOpener): void {
  /** What the next process makes of these calls. */
  async function mayHaveLeft(journal: JournalUnderTest, ...calls: HeldCall[]): Promise<boolean[]> {
    const next = journal.reopen()
    const answers: boolean[] = []
    for (const call of calls) answers.push(next.mayHaveLeft(await journal.takenOver(call)))
    return answers
  }

  describe('the journal of sent calls', () => {
    test('a call may have left once it was recorded, and no other call', () =>
      withJournal(async (journal) => {
        const calls = journal.reopen()
        calls.dropEarlier()
        const [sent, never] = [await journal.letIn('sent'), await journal.letIn('never')]
        await calls.record(sent)
        assert.deepEqual(await mayHaveLeft(journal, sent, never), [true, false])
      }))

    test('a call that was retracted has not left, unless it was recorded again', () =>
      withJournal(async (journal) => {
        const calls = journal.reopen()
        calls.dropEarlier()
        const [refused, again] = [await journal.letIn('refused'), await journal.letIn('again')]
        for (const call of [refused, again]) {
          await calls.record(call)
          await calls.retract(call)
        }
        await calls.record(again)
        assert.deepEqual(await mayHaveLeft(journal, refused, again), [false, true])
      }))

    test('a process answers for what it recorded itself, too', () =>
      withJournal(async (journal) => {
        const calls = journal.reopen()
        calls.dropEarlier()
        const [sent, refused] = [await journal.letIn('sent'), await journal.letIn('refused')]
        for (const call of [sent, refused]) await calls.record(call)
        await calls.retract(refused)
        assert.equal(calls.mayHaveLeft(await journal.takenOver(sent)), true)
        const late = await journal.letIn('late')
        await calls.record(late)
        assert.deepEqual(await mayHaveLeft(journal, late), [true])
      }))

    test('a process that died before it dealt with what it found leaves all of it to the next', () =>
      withJournal(async (journal) => {
        const first = journal.reopen()
        first.dropEarlier()
        const calls = [await journal.letIn('first'), await journal.letIn('second'), await journal.letIn('never')]
        await first.record(calls[0])
        await journal.reopen().record(calls[1])
        assert.deepEqual(await mayHaveLeft(journal, ...calls), [true, true, false])
      }))
  })
}
