/** Gives credit, or takes granted credit back with an amount below zero. With an id of its own a repetition is harmless. */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { readUsd } from '../../../../lib/usd.ts'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { Balance, GrantOutcome } from '../../../domain/credits/ledger.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { toBalanceView } from '../account-view.ts'
import { mustFindAccount } from '../must-find.ts'
import { ADMIN_PATH, type AdminKit, idOf, send } from '../operation.ts'

export interface GrantCreditsDeps {
  readonly kit: AdminKit
  readonly accounts: Pick<Accounts, 'find'>
}

interface NewGrantBody {
  readonly micros?: number
  readonly usd?: string
  readonly memo?: string
  readonly id?: string
}

export function grantCredits(app: FastifyInstance, { kit, accounts }: GrantCreditsDeps): void {
  app.post(`${ADMIN_PATH}/accounts/:id/grants`, async (request, reply) => {
    const { id: accountId } = mustFindAccount(accounts, idOf(request))
    const { memo = '', id = randomUUID(), ...amount } = await kit.readBody<NewGrantBody>(request, 'NewGrant')
    const micros = readAmount(amount)
    const change = { action: 'credits.grant', subject: accountId, details: { id, micros, memo } }
    const { ledger } = kit.audited(request, change)
    const outcome = await ledger.grant({ id: toReference(id), accountId, micros, at: kit.clock.now(), memo })
    return send(reply, 201, { id, outcome: outcome.outcome, balance: toBalanceView(balanceOf(outcome)) })
  })
}

function readAmount({ micros, usd }: Pick<NewGrantBody, 'micros' | 'usd'>): number {
  if ((micros === undefined) === (usd === undefined)) throw invalid('or usd must be given, and not both')
  const amount = micros ?? readUsd(usd ?? '')
  if (amount === null || amount === 0) throw invalid('must not be zero')
  return amount
}

function balanceOf(outcome: GrantOutcome): Balance {
  if (outcome.outcome === 'unmetered') {
    throw invalid('cannot be granted: this account is not metered; give it a creditFloorMicros first')
  }
  if (outcome.outcome === 'out_of_bounds') {
    const { available, held } = outcome.balance
    throw invalid(`would leave the account out of bounds; it has ${available} micro-dollars, and ${held} are held`)
  }
  return outcome.balance
}

/** References of one kind are unique in the whole ledger, whatever names callers choose. */
function toReference(id: string): string {
  return `grant:${id}`
}

function invalid(problem: string): ServiceError {
  return new ServiceError('invalid_field', `micros ${problem}`, { details: { field: 'micros' } })
}
