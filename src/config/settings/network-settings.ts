/** Where the service listens, how it is reached, and how much it takes at a time. */
import { readList, readOnOff, readSwitch, readWordOr } from '../readers/read-choice.ts'
import {
  readCidr,
  readCorsOrigin,
  readHostName,
  readListenHost,
  readMountPrefix,
  readPublicUrl,
} from '../readers/read-network.ts'
import { MIB, readBytes, readCount } from '../readers/read-quantity.ts'
import { readToken } from '../secrets.ts'
import type { Setting } from './setting.ts'

const BRAND = /^[A-Za-z][A-Za-z0-9-]{0,31}$/

function readBrand(text: string): string {
  if (BRAND.test(text)) return text
  throw new Error(
    `has the item ${JSON.stringify(text)}, which cannot be part of a header name; give for example Service`,
  )
}

function readBrands(text: string): readonly string[] {
  const brands = readList(readBrand)(text)
  if (brands.length >= 1 && brands.length <= 4) return brands
  throw new Error('needs one to four words; give for example Service,Comfy')
}

export const NETWORK_SETTINGS = {
  host: {
    group: 'Network',
    argument: '<address>',
    fallback: '127.0.0.1',
    read: readListenHost,
    help: 'The address to listen on. Anything but loopback (also an empty value, `0.0.0.0` and `::`) needs a `token` in the kind `local`; in the other kinds callers use keys of their accounts.',
  },
  port: {
    group: 'Network',
    argument: '<port>',
    fallback: '8189',
    read: readCount({ min: 0, max: 65_535, example: 8189 }),
    help: 'The port to listen on. `0` takes any free port; the start prints the address.',
  },
  token: {
    group: 'Network',
    argument: '<token>',
    fallback: 'none',
    read: readWordOr('none', null, readToken),
    help: 'A bearer token that every request must carry, except for health (`/healthz`, `/readyz`, `/api/v2/health`), `/docs` and preflight. For the kind `local` only. Prefer the variable: a command line is visible to others.',
    isSecret: true,
  },
  allowInsecureBind: {
    group: 'Network',
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'For the kind `local`: allows a non-loopback `host` without a `token`. Whoever reaches the port can then run jobs and read every result.',
  },
  allowedHosts: {
    group: 'Network',
    argument: '<names>',
    fallback: '',
    read: readList(readHostName),
    help: 'Further host names that clients may use in `Host`, comma separated, without port. Loopback names, `host` and the host of `publicUrl` are always allowed.',
  },
  corsOrigins: {
    group: 'Network',
    argument: '<origins>',
    fallback: '',
    read: readList(readCorsOrigin),
    help: 'Browser origins that may call the service, comma separated and exact, such as `https://app.example.com`. `*` is refused.',
  },
  publicUrl: {
    group: 'Network',
    argument: '<url>',
    fallback: 'none',
    read: readWordOr('none', null, readPublicUrl),
    help: 'Scheme, host and port under which clients reach the service: the base of absolute links. `none`: what the request says.',
  },
  mountPrefix: {
    group: 'Network',
    argument: '<path>',
    fallback: '',
    read: readMountPrefix,
    help: 'A path in front of every route, such as `/deployment/demo`; links begin with it.',
  },
  absoluteUrls: {
    group: 'Network',
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Gives the links of a job (`urls`) with scheme and host, as the official proxy does, instead of beginning with a slash.',
  },
  trustedProxies: {
    group: 'Network',
    argument: '<ranges>',
    fallback: '',
    read: readList(readCidr),
    help: 'Addresses or ranges of proxies whose `X-Forwarded-*` headers count, comma separated. From anywhere else they are ignored.',
  },
  maxBody: {
    group: 'Network',
    argument: '<size>',
    fallback: '32MiB',
    read: readBytes({ min: 1024, max: 1024 * MIB }),
    help: 'The largest JSON body, workflows included.',
  },
  maxBodies: {
    group: 'Network',
    argument: '<size>',
    fallback: '256MiB',
    read: readBytes({ min: MIB, max: 65_536 * MIB }),
    help: 'The memory that all request bodies may use together. Beyond it requests are refused and may be sent again seconds later. File uploads are streamed and do not count; one body of the largest size always fits.',
  },
  maxBodiesPerCaller: {
    group: 'Network',
    argument: '<size>',
    fallback: '128MiB',
    read: readBytes({ min: MIB, max: 65_536 * MIB }),
    help: 'The same for the bodies of one account.',
  },
  maxStreams: {
    group: 'Network',
    argument: '<count>',
    fallback: '10000',
    read: readCount({ min: 1, max: 1_000_000 }),
    help: 'Event streams and sockets open at once; further ones get `too_many_streams`, polling stays available.',
  },
  brand: {
    group: 'Network',
    argument: '<words>',
    fallback: 'Service,Comfy',
    read: readBrands,
    help: 'The words of branded header names, comma separated: each such header is sent once per word (`X-Service-Request-Id`, `X-Comfy-Request-Id`).',
  },
  transferGc: {
    group: 'Network',
    argument: '<on or off>',
    fallback: 'on',
    read: readOnOff,
    help: 'Asks for a minor garbage collection with every 16 MiB that are uploaded or downloaded, which saves processor time on large transfers. `off` leaves it to the runtime.',
  },
} as const satisfies Record<string, Setting<unknown>>
