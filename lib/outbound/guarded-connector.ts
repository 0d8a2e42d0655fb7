/** Connections that go only where a network allows, whatever a name leads to at the moment they are made. */
import { isIP, type LookupFunction } from 'node:net'
import type { buildConnector } from 'undici'
import { loadUndici } from './load-undici.ts'
import { BlockedAddressError, type Network, type ResolvedAddress, toLiteral } from './network.ts'

const CONNECT_TIMEOUT_MS = 10_000

/**
 * Connections to addresses that were checked, and to no others. The name is resolved once per connection and the socket gets
 * exactly the addresses that passed, so a name that answers differently the second time (DNS rebinding) gains nothing.
 */
export function createGuardedConnector(network: Network): buildConnector.connector {
  let connect: buildConnector.connector | null = null
  const openConnector = () =>
    loadUndici().buildConnector({
      allowH2: false,
      timeout: CONNECT_TIMEOUT_MS,
      lookup: createGuardedLookup(network),
      // The type asks for a port that each connection brings itself.
    } as buildConnector.BuildOptions)
  return function guardedConnect(options, callback) {
    const literal = toLiteral(options.hostname)
    // The system does not look up an address that is written out, so the lookup would never see it.
    if (isIP(literal) !== 0 && !network.mayConnect(literal)) {
      return callback(new BlockedAddressError(options.hostname, 'it is not a public address'), null)
    }
    connect ??= openConnector()
    connect(options, callback)
  }
}

function createGuardedLookup(network: Network): LookupFunction {
  return function guardedLookup(hostname, options, callback) {
    resolveAllowed(hostname, network).then(
      (addresses) => {
        if (options.all) callback(null, [...addresses])
        else callback(null, addresses[0].address, addresses[0].family)
      },
      (error) => callback(error, '', 0),
    )
  }
}

async function resolveAllowed(hostname: string, network: Network): Promise<ResolvedAddress[]> {
  const addresses = (await network.resolve(hostname)).filter(({ address }) => network.mayConnect(address))
  if (addresses.length === 0) throw new BlockedAddressError(hostname, 'its name leads to no public address')
  return addresses
}

/** The refusal of the guarded connection is the cause of the client's error, and the clearer message. */
export function unwrapBlocked(error: unknown): never {
  const cause = error instanceof Error ? error.cause : null
  throw cause instanceof BlockedAddressError ? cause : error
}
