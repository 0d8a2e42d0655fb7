/** `atelier accounts`: who may use the service, and how much of it. */
import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { CommandError, EXIT, type Finish, type Terminal } from '../terminal.ts'
import type { AccountPage, AccountSummary, AccountWire, EntryWire } from './admin-answers.ts'
import { type AdminClient, addAdminCommand, type Options, textOf, toPairs, toTable } from './admin-command.ts'

export function addAccounts(program: Command, terminal: Terminal, finish: Finish): void {
  const accounts = program.command('accounts').description('accounts of the cloud and serverless kinds')
  const parts = { terminal, finish }

  addAdminCommand(
    withLimits(accounts.command('create'))
      .description('create an account')
      .argument('[id]', 'its id')
      .option('--id <id>', 'the same')
      .option('--name <text>', 'a name for people; default: the id')
      .option('--tier <tier>', 'its tier; default: the first one'),
    { ask: create, show: showAccount },
    parts,
  )

  addAdminCommand(accounts.command('list').description('list accounts'), { ask: listAll, show: showList }, parts)

  addAdminCommand(
    accounts
      .command('show')
      .description('limits, use, balance, holds, entries and usage of an account')
      .argument('<id>', 'the account'),
    { ask: (client, _options, [id]) => client.call<AccountWire>('GET', pathOf(id)), show: showAccount },
    parts,
  )

  addAdminCommand(
    withLimits(accounts.command('update'))
      .description('change an account')
      .argument('<id>', 'the account')
      .option('--name <text>', 'its name')
      .option('--tier <tier>', 'its tier')
      .option('--subscription <state>', 'active or inactive')
      .option('--status <status>', 'active or suspended')
      .option('--clear-limits', 'drop all limits of its own'),
    { ask: update, show: showAccount },
    parts,
  )
}

function withLimits(command: Command): Command {
  const collect = (item: string, before: string[] | undefined) => [...(before ?? []), item]
  return command
    .option('--limit <name=value>', 'a limit of its own, such as concurrentJobs=3; repeatable', collect)
    .option('--allow-models <ids>', 'the only partner models it may use, such as bfl/*,kling/v2; all: every one')
    .option('--deny-models <ids>', 'partner models it may not use; none: no such list')
}

export function pathOf(id: string | undefined): string {
  return `/accounts/${encodeURIComponent(id ?? '')}`
}

function create(client: AdminClient, options: Options, [given]: readonly (string | undefined)[]): Promise<AccountWire> {
  const id = given ?? textOf(options, 'id') ?? `acct-${randomBytes(6).toString('hex')}`
  const limits = readLimits(options)
  return client.call('POST', '/accounts', { ...namesOf(options), id, ...(limits !== null && { limits }) })
}

async function update(
  client: AdminClient,
  options: Options,
  [id]: readonly (string | undefined)[],
): Promise<AccountWire> {
  const change: Record<string, unknown> = { ...namesOf(options) }
  const [subscription, status] = [textOf(options, 'subscription'), textOf(options, 'status')]
  if (subscription !== null)
    change['subscription_active'] = readChoice('--subscription', subscription, ['active', 'inactive']) === 'active'
  if (status !== null) change['status'] = status
  const limits = readLimits(options)
  if (options['clearLimits'] === true) change['limits'] = limits ?? {}
  // Limits that the command does not name keep their values.
  else if (limits !== null)
    change['limits'] = { ...(await client.call<AccountWire>('GET', pathOf(id))).overrides, ...limits }
  if (Object.keys(change).length === 0)
    throw new CommandError('nothing to change; see atelier accounts update --help', EXIT.usage)
  return client.call('PATCH', pathOf(id), change)
}

function namesOf(options: Options): Record<string, string> {
  const [name, tier] = [textOf(options, 'name'), textOf(options, 'tier')]
  return { ...(name !== null && { name }), ...(tier !== null && { tier }) }
}

/** Reads `name=value`. Values are written as in the tiers: numbers, true, false, null, or a JSON list. */
function readLimits(options: Options): Record<string, unknown> | null {
  const given = (options['limit'] as readonly string[] | undefined) ?? []
  const [allowed, denied] = [textOf(options, 'allowModels'), textOf(options, 'denyModels')]
  const limits: Record<string, unknown> = {
    ...Object.fromEntries(given.map(readLimit)),
    ...(allowed !== null && { allowModels: allowed === 'all' ? null : readIds(allowed) }),
    ...(denied !== null && { denyModels: denied === 'none' ? [] : readIds(denied) }),
  }
  return Object.keys(limits).length === 0 ? null : limits
}

function readIds(text: string): string[] {
  return text
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '')
}

function readLimit(text: string): [string, unknown] {
  const equals = text.indexOf('=')
  try {
    if (equals > 0) return [text.slice(0, equals), JSON.parse(text.slice(equals + 1)) as unknown]
  } catch {
    // The error below reports it.
  }
  throw new CommandError(
    `--limit ${JSON.stringify(text)} is not name=value; give for example concurrentJobs=3 or denyNodes=["RunModel"]`,
    EXIT.usage,
  )
}

function readChoice(flag: string, text: string, choices: readonly string[]): string {
  if (choices.includes(text)) return text
  throw new CommandError(`${flag} must be one of ${choices.join(', ')}`, EXIT.usage)
}

async function listAll(client: AdminClient): Promise<Pick<AccountPage, 'accounts'>> {
  const accounts: AccountSummary[] = []
  let next: string | null = ''
  while (next !== null) {
    const page: AccountPage = await client.call('GET', `/accounts?limit=1000&after=${encodeURIComponent(next)}`)
    accounts.push(...page.accounts)
    next = page.next
  }
  return { accounts }
}

function showList({ accounts }: Pick<AccountPage, 'accounts'>): string {
  const rows = accounts.map(({ id, name, tier, status, created_at }) => [id, name, tier, status, created_at])
  return toTable(['id', 'name', 'tier', 'status', 'created'], rows, {
    empty: 'no accounts; make one with: atelier accounts create',
  })
}

function showAccount(account: AccountWire): string {
  const { limits, use, balance, usage, holds, entries } = account
  const rate = `${limits.requestsPerMinute} a minute, ${limits.requestBurst} at once`
  const money = `$${balance?.available_usd}, and $${balance?.held_usd} held for ${holds.length} pieces of work`
  const head = toPairs([
    ['account', account.id],
    ['name', account.name],
    ['tier', account.tier],
    ['status', limits.subscriptionActive ? account.status : `${account.status}, subscription inactive`],
    ['running', `${use.running} of ${limits.concurrentJobs}`],
    ['waiting', `${use.queued} of ${limits.queuedJobs}`],
    ['streams', `${use.streams} of ${limits.streams}`],
    ['requests', limits.requestsPerMinute === null ? 'not limited' : rate],
    ['models', showModels(limits)],
    ['balance', balance === null ? 'not metered' : money],
    ['charged', `$${usage.charged_usd} since ${usage.from.slice(0, 10)}`],
  ])
  return entries.length === 0 ? head : `${head}\n\n${showEntries(entries)}`
}

function showModels({ allowModels, denyModels }: AccountWire['limits']): string {
  const allowed = allowModels === null ? 'all' : allowModels.length === 0 ? 'none' : `only ${allowModels.join(', ')}`
  return denyModels.length === 0 ? allowed : `${allowed}, but not ${denyModels.join(', ')}`
}

export function showEntries(entries: readonly EntryWire[]): string {
  const rows = entries.map(({ at, kind, available_usd, reference, memo }) => [at, kind, available_usd, reference, memo])
  return toTable(['at', 'entry', 'available $', 'for', 'memo'], rows, { empty: 'no entries' })
}
