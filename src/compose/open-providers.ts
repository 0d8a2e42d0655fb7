/** The providers that models run on: those that come with the service, and one for each set of rules in the catalogue. */
import { createSandboxProvider } from '../adapters/providers/sandbox/provider.ts'
import type { Secrets } from '../config/secrets.ts'
import type { HostAssets } from '../domain/models/hosting.ts'
import type { Provider } from '../domain/models/provider.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { sleep } from '../lib/sleep.ts'
import type { OpenProvider } from './open-models.ts'

export interface ProviderParts {
  readonly secrets: Pick<Secrets, 'providers'>
  readonly clock: Clock
  readonly log: Log
}

export interface OpenedProviders extends AsyncDisposable {
  /** They need no rules of their own. */
  readonly builtIn: readonly Provider[]
  readonly open: OpenProvider
  readonly hostAssets: HostAssets
}

export function openProviders({ clock }: ProviderParts): OpenedProviders {
  return {
    builtIn: [createSandboxProvider({ clock, sleep })],
    open: ({ provider: name }) => ({
      name,
      access: () => 'none',
      checkModel: () => [],
      deduplicates: () => false,
      submit: () => Promise.reject(new Error(`${name} is not set up`)),
      poll: () => Promise.reject(new Error(`${name} is not set up`)),
      async [Symbol.asyncDispose]() {},
    }),
    hostAssets: async ({ body }) => ({ body, hasForeignUrls: false }),
    async [Symbol.asyncDispose]() {},
  }
}
