/**
 * Whether an IP address belongs to the public internet. Not public are private, loopback, link-local, shared (carrier), multicast
 * and documentation addresses, and every IPv6 form that wraps an IPv4 address, because it could carry any of the others past a
 * check of the outer address.
 */
import { BlockList, isIP } from 'node:net'

const NOT_PUBLIC_V4 = [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // shared address space of carriers
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local, with the metadata services of the clouds
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, and broadcast
] as const

// Exceptions inside 2000::/3, the block of global unicast addresses.
const NOT_PUBLIC_V6 = [
  ['2001::', 23], // protocol assignments: Teredo wraps IPv4
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4 wraps IPv4
  ['3fff::', 20], // documentation
] as const

const refused = new BlockList()
for (const [net, prefix] of NOT_PUBLIC_V4) refused.addSubnet(net, prefix, 'ipv4')
for (const [net, prefix] of NOT_PUBLIC_V6) refused.addSubnet(net, prefix, 'ipv6')

// Only 2000::/3 is global unicast; outside it lie loopback, mapped addresses, NAT64, unique local, link-local and multicast.
const globalV6 = new BlockList()
globalV6.addSubnet('2000::', 3, 'ipv6')

/** Also false for everything that is not an IP address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !refused.check(address, 'ipv4')
  // An address with a zone belongs to a local link.
  if (family !== 6 || address.includes('%')) return false
  return globalV6.check(address, 'ipv6') && !refused.check(address, 'ipv6')
}
