/** The credits of accounts: what was granted, held and charged, grants and refunds, and whether the ledger adds up. */

import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { readUsd } from '../../../../lib/text/usd.ts'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { Balance, GrantOutcome, LedgerStore, RefundOutcome } from '../../../domain/credits/ledger.ts'
import type { ReadStatement } from '../../../domain/credits/statement.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, sendJson, sendTable } from '../../kit/request.ts'
import { toStatementCsv, toStatementView } from '../../kit/statement-view.ts'
import { ADMIN_PATH, type AdminKit, readBefore, readLimit, readParameters, toPage } from '../admin-operation.ts'
import { mustFindAccount, toBalanceView, toEntryView, toHoldView } from './accounts.ts'

interface CreditOperationDeps {
  readonly kit: AdminKit
  readonly accounts: Pick<Accounts, 'find'>
  readonly ledger: Pick<LedgerStore, 'entries' | 'holds' | 'check'>
  readonly readStatement: ReadStatement
}

const MAX_HOLDS = 1000

export function listEntries(app: FastifyInstance, { accounts, ledger }: CreditOperationDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id/entries`, needs('operator'), async (request, reply) => {
    const parameters = readParameters(request, ['limit', 'before'])
    const { id } = mustFindAccount(accounts, idOf(request))
    const limit = readLimit(parameters)
    const found = await ledger.entries(id, { limit: limit + 1, before: readBefore(parameters) })
    const { page, next } = toPage(found, limit)
    return sendJson(reply, 200, { entries: page.map(toEntryView), next })
  })
}

export function listHolds(app: FastifyInstance, { accounts, ledger }: CreditOperationDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id/holds`, needs('operator'), async (request, reply) => {
    const { id } = mustFindAccount(accounts, idOf(request))
    const holds = await ledger.holds(id, MAX_HOLDS)
    return sendJson(reply, 200, { holds: holds.map(toHoldView) })
  })
}

export function getAccountStatement(app: FastifyInstance, { accounts, readStatement }: CreditOperationDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id/statement`, needs('operator'), async (request, reply) => {
    const month = readParameters(request, ['month']).get('month') ?? null
    const { id } = mustFindAccount(accounts, idOf(request))
    const statement = await readStatement(id, month)
    return sendTable(request, reply, { json: () => toStatementView(statement), csv: () => toStatementCsv(statement) })
  })
}

interface NewGrantBody {
  readonly micros?: number
  readonly usd?: string
  readonly memo?: string
  readonly id?: string
}

/** Gives credit, or takes granted credit back with an amount below zero. With an id of its own a repetition is harmless. */
export function grantCredits(app: FastifyInstance, { kit, accounts }: CreditOperationDeps): void {
  app.post(`${ADMIN_PATH}/accounts/:id/grants`, needs('operator'), async (request, reply) => {
    const { id: accountId } = mustFindAccount(accounts, idOf(request))
    const { memo = '', id = randomUUID(), ...amount } = await kit.readBody<NewGrantBody>(request, 'NewGrant')
    const micros = readAmount(amount)
    const change = { action: 'credits.grant', subject: accountId, details: { id, micros, memo } }
    const { ledger } = kit.audited(request, change)
    const outcome = await ledger.grant({ id: toReference(id), accountId, micros, at: kit.clock.now(), memo })
    return sendJson(reply, 201, { id, outcome: outcome.outcome, balance: toBalanceView(balanceOf(outcome)) })
  })
}

function readAmount({ micros, usd }: Pick<NewGrantBody, 'micros' | 'usd'>): number {
  if ((micros === undefined) === (usd === undefined)) throw invalidField('micros', 'or usd must be given, and not both')
  const amount = micros ?? readUsd(usd ?? '')
  if (amount === null || amount === 0) throw invalidField('micros', 'must not be zero')
  return amount
}

function balanceOf(outcome: GrantOutcome): Balance {
  if (outcome.outcome === 'unmetered') {
    throw invalidField('micros', 'cannot be granted: this account is not metered; give it a creditFloorMicros first')
  }
  if (outcome.outcome === 'out_of_bounds') {
    const { available, held } = outcome.balance
    const problem = `would leave the account out of bounds; it has ${available} micro-dollars, and ${held} are held`
    throw invalidField('micros', problem)
  }
  return outcome.balance
}

/** References of one kind are unique in the whole ledger, whatever names callers choose. */
function toReference(id: string): string {
  return `grant:${id}`
}

interface NewRefundBody {
  readonly hold_id: string
  readonly micros?: number | null
  readonly memo?: string
}

export function refundCharge(app: FastifyInstance, { kit }: CreditOperationDeps): void {
  app.post(`${ADMIN_PATH}/refunds`, needs('operator'), async (request, reply) => {
    const { hold_id: holdId, micros = null, memo = '' } = await kit.readBody<NewRefundBody>(request, 'NewRefund')
    const change = { action: 'credits.refund', subject: holdId, details: { micros, memo } }
    const outcome = await kit.audited(request, change).ledger.refund({ holdId, micros, at: kit.clock.now(), memo })
    return sendJson(reply, 201, toRefundView(holdId, outcome))
  })
}

function toRefundView(holdId: string, outcome: RefundOutcome): object {
  if (outcome.outcome === 'not_charged') throw new ServiceError('not_found', 'nothing was charged under this id')
  if (outcome.outcome === 'more_than_charged') {
    throw invalidField('micros', `must be at most what was charged, ${outcome.charged}`)
  }
  const { accountId, micros } = outcome
  return { hold_id: holdId, outcome: outcome.outcome, account_id: accountId, micros }
}

export function checkLedger(app: FastifyInstance, { ledger }: CreditOperationDeps): void {
  app.get(`${ADMIN_PATH}/ledger/check`, needs('operator'), async (_request, reply) => {
    const { accounts, entries, openHolds, faults } = await ledger.check()
    return sendJson(reply, 200, {
      accounts,
      entries,
      open_holds: openHolds,
      faults: faults.map(({ fault, accountId, reference, expected, found }) => ({
        fault,
        account_id: accountId,
        reference,
        expected_micros: expected,
        found_micros: found,
      })),
    })
  })
}
