/** Budgets in the hands of whoever made them: an account its own, an operator those of every account. */
import type { Clock } from '../../../../lib/clock.ts'
import { newUuidV4 } from '../../../../lib/ids.ts'
import { MAX_MICROS, type Micros } from '../../../../lib/text/usd.ts'
import { openZone } from '../../../../lib/zoned-days.ts'
import type { AuditEntry } from '../../accounts/audit.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import { type Budget, type BudgetRaise, countsAt, limitAt, NO_COUNTS, resetOf, spentOf } from './budget.ts'
import type { BudgetStore } from './budget-store.ts'

export interface BudgetWish
  extends Pick<
    Budget,
    'name' | 'subject' | 'value' | 'limitMicros' | 'unit' | 'style' | 'timeZone' | 'shares' | 'isHard'
  > {}

export interface BudgetEdit extends Partial<Pick<Budget, 'name' | 'limitMicros' | 'shares' | 'isHard'>> {
  /** null takes it back. */
  readonly raise?: BudgetRaise | null
}

/** Who asks, and for which account. */
export interface BudgetOwner {
  readonly accountId: string
  readonly as: Budget['owner']
  /** For the audit log. */
  readonly actor: string
}

export interface BudgetStanding {
  readonly budget: Budget
  readonly spentMicros: Micros
  /** With what it is raised by now. */
  readonly limitNowMicros: Micros
  readonly resetsAt: Date
}

export interface Budgets {
  list(accountId: string): Promise<readonly BudgetStanding[]>
  /** Throws not_found. */
  find(accountId: string, id: string): Promise<BudgetStanding>
  /** Throws invalid_field. */
  create(owner: BudgetOwner, wish: BudgetWish): Promise<BudgetStanding>
  /** The following throw not_found, and forbidden for one that an operator made. */
  change(owner: BudgetOwner, id: string, edit: BudgetEdit): Promise<BudgetStanding>
  remove(owner: BudgetOwner, id: string): Promise<void>
}

interface BudgetsDeps {
  readonly store: BudgetStore
  readonly audited: (entry: AuditEntry) => { readonly budgets: BudgetStore }
  readonly clock: Clock
}

const MAX_BUDGETS = 50
const MAX_SHARES = 10
const MAX_SHARE = 1000
const MAX_TEXT = 200
const MAX_RAISE_MS = 366 * 24 * 60 * 60 * 1000

export function createBudgets({ store, audited, clock }: BudgetsDeps): Budgets {
  const through = ({ accountId, actor }: BudgetOwner, action: string, details: AuditEntry['details']) =>
    audited({ actor, action, subject: accountId, at: clock.now(), details }).budgets

  function toStanding(budget: Budget): BudgetStanding {
    const at = clock.now().getTime()
    const counts = countsAt(budget, budget.counts, at)
    const spentMicros = spentOf(counts)
    return { budget, spentMicros, limitNowMicros: limitAt(budget, at), resetsAt: resetOf(budget, counts, at) }
  }

  async function mustChange({ accountId, as }: BudgetOwner, id: string): Promise<void> {
    const known = mustBeThere(await store.find(accountId, id))
    if (as === 'account' && known.owner === 'operator')
      throw new ServiceError('forbidden', 'this budget was set by whoever runs the service, who alone changes it')
  }

  return {
    list: async (accountId) => (await store.list(accountId)).map(toStanding),
    find: async (accountId, id) => toStanding(mustBeThere(await store.find(accountId, id))),
    async create(owner, wish) {
      checkWish(wish)
      const now = clock.now()
      const budget: Budget = {
        ...{ ...wish, id: newUuidV4(), accountId: owner.accountId, owner: owner.as, shares: toShares(wish.shares) },
        ...{ raiseMicros: null, raiseUntil: null, counts: NO_COUNTS, createdAt: now, changedAt: now },
      }
      const details = { budget: budget.id, ...wish }
      const made = await through(owner, 'budget.create', details).create(budget, MAX_BUDGETS)
      if (made.outcome === 'created') return toStanding(made.budget)
      if (made.outcome === 'too_many')
        throw invalidField('name', `cannot be added: an account has at most ${MAX_BUDGETS} budgets; remove one first`)
      throw invalidField('name', 'cannot be added: the account is not metered, so nothing that it does costs anything')
    },
    async change(owner, id, { raise, ...edit }) {
      await mustChange(owner, id)
      const { name, limitMicros, shares } = edit
      if (name !== undefined) mustBeText('name', name)
      if (limitMicros !== undefined) mustBeAmount('limit_usd', limitMicros)
      if (raise != null) checkRaise(raise, clock.now())
      const change = {
        ...edit,
        ...(shares !== undefined && { shares: toShares(shares) }),
        ...(raise !== undefined && { raiseMicros: raise?.micros ?? null, raiseUntil: raise?.until ?? null }),
      }
      const changing = through(owner, 'budget.change', { budget: id, ...change })
      return toStanding(mustBeThere(await changing.change(owner.accountId, id, change, clock.now())))
    },
    async remove(owner, id) {
      await mustChange(owner, id)
      const isRemoved = await through(owner, 'budget.remove', { budget: id }).remove(owner.accountId, id)
      if (!isRemoved) throw noBudget()
    },
  }
}

function mustBeThere(budget: Budget | null): Budget {
  if (budget === null) throw noBudget()
  return budget
}

function noBudget(): ServiceError {
  return new ServiceError('not_found', 'there is no budget with this id')
}

function checkWish({ name, subject, value, limitMicros, timeZone, style, shares }: BudgetWish): void {
  mustBeText('name', name)
  mustBeAmount('limit_usd', limitMicros)
  if ((subject === 'account') !== (value === null))
    throw invalidField(
      'value',
      subject === 'account' ? 'must be left out for the whole account' : `must name the ${subject}`,
    )
  if (value !== null) mustBeText('value', value)
  if (openZone(timeZone) === null) throw invalidField('time_zone', 'must be an IANA name such as Europe/Berlin')
  if (style === 'rolling' && timeZone !== 'UTC')
    throw invalidField('time_zone', 'must be left out for a rolling period, which is the same everywhere')
  toShares(shares)
}

function checkRaise({ micros, until }: BudgetRaise, now: Date): void {
  mustBeAmount('raise.usd', micros)
  const lasts = until.getTime() - now.getTime()
  if (!(lasts > 0 && lasts <= MAX_RAISE_MS)) throw invalidField('raise.until', 'must be in the future, within a year')
}

function mustBeText(field: string, text: string): void {
  if (text === '' || text.length > MAX_TEXT) throw invalidField(field, `must have 1 to ${MAX_TEXT} characters`)
}

function mustBeAmount(field: string, micros: Micros): void {
  if (Number.isSafeInteger(micros) && micros >= 1 && micros <= MAX_MICROS) return
  throw invalidField(field, 'must be more than nothing, in dollars with up to six decimals')
}

/** In percent, ascending, each once. */
function toShares(shares: readonly number[]): readonly number[] {
  const isShare = (share: number) => Number.isInteger(share) && share >= 1 && share <= MAX_SHARE
  if (shares.length > MAX_SHARES || !shares.every(isShare))
    throw invalidField('alert_percent', `must be at most ${MAX_SHARES} whole numbers from 1 to ${MAX_SHARE}`)
  return [...new Set(shares)].toSorted((one, other) => one - other)
}
