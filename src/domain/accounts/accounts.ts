/**
 * Every account in memory, so that no request waits for the store to know what it may do: a few hundred bytes each, and only
 * operators create them. A change is stored first and takes effect here as soon as it is. What other processes change comes
 * with the next refresh, and a change is made to the account as the store has it, never to an older copy.
 */

import type { Clock } from '../../../lib/clock.ts'
import { hasAtMost } from '../../../lib/text/cut-text.ts'
import { FollowedList } from '../../../lib/waiting/followed-list.ts'
import { invalidField, ServiceError } from '../errors.ts'
import {
  ACCOUNT_NAME_MAX_LENGTH,
  type AccountRecord,
  type AccountStatus,
  isAccountId,
  LOCAL_ACCOUNT_ID,
} from './account.ts'
import type { AccountDirectory, EnforcedLimits, VersionedAccount } from './account-store.ts'
import { type AccountLimits, type LimitOverrides, limitsFor, type Tiers } from './limits/tiers.ts'

interface NewAccount {
  readonly id: string
  readonly name: string
  /** null: the default tier. */
  readonly tier: string | null
  readonly overrides: LimitOverrides
}

export interface AccountChange {
  readonly name?: string
  readonly tier?: string
  /** Replaces all of them. */
  readonly overrides?: LimitOverrides
  readonly status?: AccountStatus
}

export interface Accounts {
  find(accountId: string): AccountRecord | null
  /** Throws not_found. */
  limitsOf(accountId: string): AccountLimits
  /** By id. */
  list(): readonly AccountRecord[]
  tiers(): Tiers
  /** Throws invalid_field, also for an id that is taken. `through`: the directory with an audit line bound to its writes. */
  create(account: NewAccount, through?: AccountDirectory): Promise<AccountRecord>
  /** Throws not_found or invalid_field. */
  change(accountId: string, change: AccountChange, through?: AccountDirectory): Promise<AccountRecord>
  /** These tiers apply from now on; returns how many accounts have other limits than before. */
  useTiers(tiers: Tiers): Promise<number>
  /** Of the newest change that is known here. */
  readonly version: number
  /** Reads what was changed in the store since the last refresh. Opening does so once. */
  refresh(): Promise<void>
}

interface AccountsDeps {
  readonly directory: AccountDirectory
  readonly tiers: Tiers
  readonly clock: Clock
  /** Called when an account is known anew or in a newer state. */
  readonly onChanged?: () => void
  /** Called after this process has changed the directory. */
  readonly announce?: () => Promise<void>
}

interface Known {
  readonly account: AccountRecord
  /** As of the last refresh: an own change since then is not counted. */
  readonly version: number
  readonly limits: AccountLimits
}

const PAGE = 1000
// Two operators may change one account at the same moment; ten times in a row they do not.
const MAX_TRIES = 10

/** Loads every account; resolves once the store enforces what the tiers say now. */
export async function openAccounts(deps: AccountsDeps): Promise<Accounts> {
  const accounts = new KnownAccounts(deps)
  await accounts.refresh()
  await accounts.useTiers(deps.tiers)
  return accounts
}

class KnownAccounts implements Accounts {
  readonly #deps: AccountsDeps
  readonly #list: FollowedList<VersionedAccount>
  readonly #known = new Map<string, Known>()
  #tiers: Tiers

  constructor(deps: AccountsDeps) {
    this.#deps = deps
    this.#tiers = deps.tiers
    this.#list = new FollowedList({
      read: (version, limit) => deps.directory.changedAfter(version, limit),
      take: ({ account, version }) => this.#remember(account, version),
      pageSize: PAGE,
    })
  }

  get version(): number {
    return this.#list.version
  }

  find(accountId: string): AccountRecord | null {
    return this.#known.get(accountId)?.account ?? null
  }

  limitsOf(accountId: string): AccountLimits {
    const known = this.#known.get(accountId)
    if (known === undefined) throw notFound()
    return known.limits
  }

  list(): readonly AccountRecord[] {
    return [...this.#known.values()].map(({ account }) => account).sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  tiers(): Tiers {
    return this.#tiers
  }

  async create({ id, name, tier, overrides }: NewAccount, through = this.#deps.directory): Promise<AccountRecord> {
    const createdAt = this.#deps.clock.now()
    const tierName = tier ?? this.#tiers.defaultName
    const account: AccountRecord = { id, name, tier: tierName, overrides, status: 'active', createdAt }
    this.#check(account)
    if (!isAccountId(id)) {
      throw invalidField('id', `must have 1 to 63 small letters, digits or dashes, and not be ${LOCAL_ACCOUNT_ID}`)
    }
    const isNew = await this.#write(account, 0, () => through.create(account, this.#enforced(account)))
    if (!isNew) throw invalidField('id', 'is taken')
    return account
  }

  async change(accountId: string, change: AccountChange, through = this.#deps.directory): Promise<AccountRecord> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      await this.refresh()
      const known = this.#known.get(accountId)
      if (known === undefined) throw notFound()
      const { version } = known
      const account: AccountRecord = { ...known.account, ...change }
      this.#check(account)
      const replace = () => through.replace(account, this.#enforced(account), version)
      if (await this.#write(account, version, replace)) return account
    }
    throw new Error(`The account ${accountId} is changed again and again by somebody else.`)
  }

  async #write(account: AccountRecord, version: number, act: () => Promise<boolean>): Promise<boolean> {
    const isWritten = await this.#list.write(act, (isDone) => {
      if (isDone) this.#remember(account, version)
    })
    if (isWritten) await this.#deps.announce?.()
    return isWritten
  }

  async useTiers(tiers: Tiers): Promise<number> {
    this.#tiers = tiers
    const all = [...this.#known.values()]
    // All of them: the store may still enforce what another configuration said before the last restart.
    const enforced = all.map(({ account }) => ({ accountId: account.id, ...this.#enforced(account) }))
    for (let from = 0; from < enforced.length; from += PAGE) {
      await this.#deps.directory.enforce(enforced.slice(from, from + PAGE))
    }
    let changed = 0
    for (const { account, version, limits } of all) {
      this.#remember(account, version)
      if (JSON.stringify(limits) !== JSON.stringify(this.limitsOf(account.id))) changed++
    }
    return changed
  }

  refresh(): Promise<void> {
    return this.#list.refresh()
  }

  #remember(account: AccountRecord, version: number): void {
    this.#known.set(account.id, { account, version, limits: this.#limits(account) })
    this.#deps.onChanged?.()
  }

  #limits({ tier, overrides }: AccountRecord): AccountLimits {
    return limitsFor(this.#tiers, tier, overrides)
  }

  #enforced(account: AccountRecord): EnforcedLimits {
    const { concurrentJobs, queuedJobs, sharePercent, creditFloorMicros } = this.#limits(account)
    return { maxRunning: concurrentJobs, maxQueued: queuedJobs, sharePercent, creditFloor: creditFloorMicros }
  }

  #check({ name, tier }: AccountRecord): void {
    if (name.trim() === '' || !hasAtMost(name, ACCOUNT_NAME_MAX_LENGTH)) {
      throw invalidField('name', `must have 1 to ${ACCOUNT_NAME_MAX_LENGTH} characters`)
    }
    if (!this.#tiers.byName.has(tier)) {
      throw invalidField('tier', `must be one of ${[...this.#tiers.byName.keys()].join(', ')}`)
    }
  }
}

function notFound(): ServiceError {
  return new ServiceError('not_found', 'there is no account with this id')
}
