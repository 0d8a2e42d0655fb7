/** The fetcher of files that callers name by an address, as the operator allows it. */
import { networkInterfaces } from 'node:os'
import { systemTicker } from '../../lib/clock.ts'
import { type Network, publicInternet } from '../../lib/outbound/network.ts'
import { openFetchInput } from '../adapters/input-urls/http-fetch-input.ts'
import type { Config } from '../config/config.ts'
import type { Secrets } from '../config/secrets.ts'
import { type FetchInput, GivenFileError } from '../domain/assets/given-files.ts'

interface InputUrlParts {
  readonly secrets: Pick<Secrets, 'inputHeaders'>
  /** Where this process listens, once it does. */
  readonly listening: Promise<string>
  /** Where other processes reach this one; null: nowhere. */
  readonly internalUrl: string | null
  /** null: the real one. */
  readonly network: Network | null
  readonly version: string
}

interface OpenedInputUrls extends AsyncDisposable {
  readonly fetchInput: FetchInput
}

export function openInputUrls(config: Config, parts: InputUrlParts): OpenedInputUrls {
  const { isPublic, hosts, origins } = config.inputUrls
  if (!isPublic && hosts.length + origins.length === 0) return NOTHING
  const ports = new Set([config.http.port, config.frontend?.port])
  const addPortOf = (url: string) => ports.add(Number(new URL(url).port))
  if (parts.internalUrl !== null) addPortOf(parts.internalUrl)
  void parts.listening.then(addPortOf)
  const { deployments, frontend, http } = config
  return openFetchInput({
    policy: config.inputUrls,
    own: {
      hosts: [
        ...http.allowedHosts,
        ...(deployments?.domain == null ? [] : [`.run.${deployments.domain}`]),
        ...(frontend?.publicUrl == null ? [] : [new URL(frontend.publicUrl).hostname]),
      ],
      isHere: isOfThisMachine,
      isPort: (port) => ports.has(port),
    },
    headers: new Map(Object.entries(JSON.parse(parts.secrets.inputHeaders?.reveal() ?? '{}'))),
    network: parts.network ?? publicInternet,
    ticker: systemTicker,
    version: parts.version,
  })
}

const NOTHING: OpenedInputUrls = {
  async fetchInput() {
    throw new GivenFileError('fetch_forbidden', 'this service fetches no files; upload it')
  },
  async [Symbol.asyncDispose]() {},
}

/** Its interfaces may change while the service runs. */
function isOfThisMachine(address: string): boolean {
  if (address.startsWith('127.') || address === '::1') return true
  return Object.values(networkInterfaces()).some((list) => list?.some((one) => one.address === address) === true)
}
