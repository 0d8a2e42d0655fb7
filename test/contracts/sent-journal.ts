/** How every journal of calls that may have reached their provider behaves. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SentJournal } from '../../src/domain/models/calls/sent-journal.ts'

/** One journal, as the processes that use it one after the other see it. */
export interface JournalUnderTest {
  /** A new process opens it; whatever process had it before is dead. */
  reopen(): SentJournal
}

export interface JournalOpener {
  /** Calls `body` with a journal that nobody has written to. */
  withJournal(body: (journal: JournalUnderTest) => void | Promise<void>): Promise<void>
}

export function testSentJournal({ withJournal }: JournalOpener): void {
  /** What a process makes of these calls that the process before it left. */
  const mayHaveLeft = (calls: SentJournal, ...callIds: string[]) => callIds.map((callId) => calls.mayHaveLeft(callId))

  describe('the journal of sent calls', () => {
    test('one that nobody wrote to can vouch for nothing: every call may have left', () =>
      withJournal((journal) => {
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'any'), [true])
      }))

    test('a call may have left once it was recorded, and no other call', () =>
      withJournal((journal) => {
        const calls = journal.reopen()
        calls.dropEarlier()
        calls.record('sent')
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'sent', 'never'), [true, false])
      }))

    test('a call that was retracted has not left, unless it was recorded again', () =>
      withJournal((journal) => {
        const calls = journal.reopen()
        calls.dropEarlier()
        for (const callId of ['refused', 'again']) {
          calls.record(callId)
          calls.retract(callId)
        }
        calls.record('again')
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'refused', 'again'), [false, true])
      }))

    test('a process answers for those before it, and its own calls change no answer', () =>
      withJournal((journal) => {
        const first = journal.reopen()
        first.dropEarlier()
        first.record('before')
        const second = journal.reopen()
        second.record('own')
        second.retract('before')
        assert.deepEqual(mayHaveLeft(second, 'before', 'own'), [true, false])
      }))

    test('a process that died before it dealt with what it found leaves all of it to the next', () =>
      withJournal((journal) => {
        const first = journal.reopen()
        first.dropEarlier()
        first.record('first')
        journal.reopen().record('second')
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'first', 'second', 'never'), [true, true, false])
      }))

    test('what earlier processes left is dropped once it has been dealt with', () =>
      withJournal((journal) => {
        const first = journal.reopen()
        first.dropEarlier()
        first.record('first')
        const second = journal.reopen()
        second.dropEarlier()
        second.record('second')
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'first', 'second'), [false, true])
      }))

    test('calls under way stay recorded, however many others come and go', () =>
      withJournal((journal) => {
        const calls = journal.reopen()
        calls.dropEarlier()
        calls.record('long')
        for (let count = 0; count < 30_000; count++) {
          const callId = `call-${String(count).padStart(36, '0')}`
          calls.record(callId)
          calls.forget(callId)
        }
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'long'), [true])
      }))
  })
}
