import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPublicAddress } from './network.ts'

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '93.184.216.34',
  '172.15.0.1',
  '172.32.0.1',
  '100.63.0.1',
  '100.128.0.1',
  '2606:4700::1111',
  '2a00:1450:4001::8',
]

const NOT_PUBLIC = {
  private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1'],
  'link-local': ['169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  'carrier space': ['100.64.0.1', '100.127.255.255'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  'reserved and broadcast': ['240.0.0.1', '255.255.255.255', '198.18.0.1', '192.0.0.170'],
  documentation: ['192.0.2.1', '198.51.100.7', '203.0.113.9', '2001:db8::1', '3fff::1'],
  'IPv4 in IPv6': ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::127.0.0.1', '::ffff:0:127.0.0.1'],
  NAT64: ['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1'],
  '6to4 and Teredo': ['2002:7f00:1::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  'site-local': ['fec0::1'],
  'no address': ['', 'localhost', '127.1', '0x7f.1', '1.2.3', 'example.com'],
}

for (const address of PUBLIC) {
  test(`${address} is public`, () => assert.equal(isPublicAddress(address), true))
}

for (const [kind, addresses] of Object.entries(NOT_PUBLIC)) {
  test(`${kind}: never public`, () => {
    for (const address of addresses) assert.equal(isPublicAddress(address), false, address)
  })
}
