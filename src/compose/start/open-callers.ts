/** Who may call, and what each of them may do: accounts, keys, limits and deployments, followed wherever another process changes them. */
import type { Log } from '../../../lib/log.ts'
import type { Config } from '../../config/config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { type Authenticate, createLocalAuthenticate } from '../../domain/accounts/caller.ts'
import type { PerAccount } from '../../domain/accounts/limits/tiers.ts'
import { type Deployments, openDeployments } from '../../domain/deployments/deployments.ts'
import { openSharedAccounts, type SharedAccounts } from '../open-accounts.ts'
import type { Directories } from '../open-directories.ts'
import { type OpenedWorkerKeys, openWorkerKeys } from '../open-worker-gateway.ts'
import type { Base } from './open-base.ts'

interface CallerParts extends Pick<Base, 'store' | 'clock' | 'log'> {
  readonly secrets: Pick<Secrets, 'token'>
  readonly directories: Directories
  /** For tests: in place of every other way to find the account of a credential. */
  readonly authenticate: Authenticate | undefined
  readonly opening: AsyncDisposableStack
}

export interface Callers {
  /** null: the local kind. */
  readonly shared: SharedAccounts | null
  readonly workerKeys: OpenedWorkerKeys
  readonly authenticate: Authenticate
  /** The same without counting the request. */
  readonly identify: Authenticate
  readonly maxUploadBytes: PerAccount
  /** null: no limit. */
  readonly storageLimitOf: (accountId: string) => number | null
  /** null: the local kind, which has none. */
  readonly deployments: Deployments | null
}

export async function openCallers(config: Config, parts: CallerParts): Promise<Callers> {
  const { store, secrets, directories, clock, log } = parts
  const shared =
    config.accounts === null ? null : await openSharedAccounts(config.accounts, { store, directories, clock, log })
  if (shared !== null) parts.opening.defer(() => flushKeyUses(shared, log))
  const workerKeys = await openWorkerKeys({ store, shared, directories, clock })
  const authenticate =
    parts.authenticate ?? shared?.authenticate ?? createLocalAuthenticate(secrets.token?.reveal() ?? null)
  const announce = () => directories.announce('deployments')
  const deployments =
    config.deployments === null ? null : await openDeployments({ store: store.deployments, clock, announce })
  directories.follow({
    ...shared?.lists,
    ...(workerKeys.ring !== null && { keys: workerKeys.ring }),
    ...(deployments !== null && { deployments }),
  })
  return {
    shared,
    workerKeys,
    authenticate,
    identify: parts.authenticate ?? shared?.identify ?? authenticate,
    maxUploadBytes: toUploadLimit(config, shared),
    storageLimitOf: (accountId) => shared?.limitsOf(accountId).storageBytes ?? null,
    deployments,
  }
}

function toUploadLimit({ assets }: Config, shared: SharedAccounts | null): PerAccount {
  if (shared === null) return assets.maxUploadBytes
  return (accountId) => Math.min(assets.maxUploadBytes, shared.limitsOf(accountId).uploadBytes ?? assets.maxUploadBytes)
}

/** When a key was last used is only information, so a store that is away at the end does not make the end a failure. */
async function flushKeyUses(shared: Pick<SharedAccounts, 'flush'>, log: Log): Promise<void> {
  try {
    await shared.flush()
  } catch (error) {
    log.warn({ err: error }, 'when keys were last used could not be stored')
  }
}
