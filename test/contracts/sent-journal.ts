/** How every journal of calls that may have reached their provider behaves. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SendMarks } from '../../src/domain/models/send-marks.ts'

/** One journal, as the processes that use it one after the other see it. */
export interface JournalUnderTest {
  /** A new process opens it; whatever process had it before is dead. */
  reopen(): SendMarks
}

export interface JournalOpener {
  /** Calls `body` with a journal that nobody has written to. */
  withJournal(body: (journal: JournalUnderTest) => void | Promise<void>): Promise<void>
}

export function testSentJournal({ withJournal }: JournalOpener): void {
  /** What a process makes of these calls that the process before it left. */
  const mayHaveLeft = (marks: SendMarks, ...callIds: string[]) => callIds.map((callId) => marks.mayHaveLeft(callId))

  describe('the journal of sent calls', () => {
    test('one that nobody wrote to can vouch for nothing: every call may have left', () =>
      withJournal((journal) => {
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'any'), [true])
      }))

    test('a call may have left once it was recorded, and no other call', () =>
      withJournal((journal) => {
        const marks = journal.reopen()
        marks.begin()
        marks.set('sent')
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'sent', 'never'), [true, false])
      }))

    test('a call that was retracted has not left, unless it was recorded again', () =>
      withJournal((journal) => {
        const marks = journal.reopen()
        marks.begin()
        for (const callId of ['refused', 'again']) {
          marks.set(callId)
          marks.retract(callId)
        }
        marks.set('again')
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'refused', 'again'), [false, true])
      }))

    test('a process answers for those before it, and its own calls change no answer', () =>
      withJournal((journal) => {
        const first = journal.reopen()
        first.begin()
        first.set('before')
        const second = journal.reopen()
        second.set('own')
        second.retract('before')
        assert.deepEqual(mayHaveLeft(second, 'before', 'own'), [true, false])
      }))

    test('a process that died before it dealt with what it found leaves all of it to the next', () =>
      withJournal((journal) => {
        const first = journal.reopen()
        first.begin()
        first.set('first')
        journal.reopen().set('second')
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'first', 'second', 'never'), [true, true, false])
      }))

    test('what earlier processes left is dropped once it has been dealt with', () =>
      withJournal((journal) => {
        const first = journal.reopen()
        first.begin()
        first.set('first')
        const second = journal.reopen()
        second.begin()
        second.set('second')
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'first', 'second'), [false, true])
      }))

    test('calls under way stay recorded, however many others come and go', () =>
      withJournal((journal) => {
        const marks = journal.reopen()
        marks.begin()
        marks.set('long')
        for (let count = 0; count < 30_000; count++) {
          const callId = `call-${String(count).padStart(36, '0')}`
          marks.set(callId)
          marks.forget(callId)
        }
        assert.deepEqual(mayHaveLeft(journal.reopen(), 'long'), [true])
      }))
  })
}
