import type { Network, ResolvedAddress } from '../../../lib/outbound/network.ts'

/** Names lead where the test says; everything else of the network is this machine's loopback, over plain http. */
export function createLoopbackNetwork(names: Readonly<Record<string, string>> = {}): Network {
  return {
    allowsPlainHttp: true,
    mayConnect: (address) => address === '127.0.0.1',
    resolve: async (hostname): Promise<ResolvedAddress[]> => {
      const address = names[hostname] ?? '127.0.0.1'
      return [{ address, family: address.includes(':') ? 6 : 4 }]
    },
  }
}
