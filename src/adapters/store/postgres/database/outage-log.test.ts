import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Log } from '../../../../../lib/log.ts'
import { createOutageLog } from './outage-log.ts'
import { toStoreError } from './postgres-error.ts'

function record(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = []
  const at = (level: string) => (facts: object, message: string) => {
    const { statement, count } = facts as { statement?: string; count?: number }
    lines.push([level, message, statement, count].filter((part) => part !== undefined).join(' | '))
  }
  return { log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } as Log, lines }
}

function fail(code: string, statement?: string): unknown {
  return toStoreError(Object.assign(new Error('failed'), { code, ...(statement && { statement }) }))
}

test('an outage is told once, and its end', () => {
  const { log, lines } = record()
  const outages = createOutageLog(log)
  for (let count = 0; count < 3; count += 1) outages.failed(fail('57P01'))
  outages.answered()
  outages.answered()
  assert.deepEqual(lines, [
    'error | the database does not answer; requests are refused until it does',
    'info | the database answers again',
  ])
})

test('a statement that the server ended is no outage, and is told with its name, once a minute at most', () => {
  const { log, lines } = record()
  let nowMs = 1000
  const outages = createOutageLog(log, () => nowMs)
  outages.failed(fail('57014', 'ledgerCheck.sum'))
  outages.answered()
  outages.failed(fail('57014', 'ledgerCheck.sum'))
  outages.failed(fail('55P03', 'jobs.claim_fitting'))
  nowMs += 60_000
  outages.failed(fail('57014', 'ledgerCheck.sum'))
  const message = 'the database ended a statement that took too long or waited too long for a lock'
  assert.deepEqual(lines, [`warn | ${message} | ledgerCheck.sum | 1`, `warn | ${message} | ledgerCheck.sum | 3`])
})
