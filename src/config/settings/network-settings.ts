/** Where the service listens, how it is reached, and how its processes hear of each other. */
import { readList, readSwitch, readWordOr } from '../readers/read-choice.ts'
import {
  readAdvertised,
  readCidr,
  readCorsOrigin,
  readHostName,
  readListenHost,
  readMountPrefix,
  readNats,
  readPublicUrl,
} from '../readers/read-network.ts'
import { MIB, readBytes, readCount } from '../readers/read-quantity.ts'
import { readToken } from '../secrets.ts'
import type { SettingTable } from './setting.ts'

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
    argument: '<address>',
    fallback: '127.0.0.1',
    read: readListenHost,
    help: 'The address to listen on. Anything but loopback (also an empty value, `0.0.0.0` and `::`) needs a `token` in the kind `local`; in the other kinds callers use keys of their accounts.',
    who: 'Whoever wants to be reached from other machines.',
  },
  port: {
    argument: '<port>',
    fallback: '8189',
    read: readCount({ min: 0, max: 65_535, example: 8189 }),
    help: 'The port to listen on. `0` takes any free port; the start prints the address.',
    who: 'Whoever has 8189 in use, or runs two services on one machine.',
  },
  token: {
    argument: '<token>',
    fallback: 'none',
    read: readWordOr('none', null, readToken),
    help: 'A bearer token that every request must carry, except for health (`/healthz`, `/readyz`, `/api/v2/health`), `/docs` and preflight. For the kind `local` only. Prefer the variable: a command line is visible to others.',
    who: 'The one user of a service that listens beyond its machine.',
    isSecret: true,
  },
  allowInsecureBind: {
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'For the kind `local`: allows a non-loopback `host` without a `token`. Whoever reaches the port can then run jobs and read every result.',
    who: 'Users of a container or a private network that already keeps others out.',
  },
  allowedHosts: {
    argument: '<names>',
    fallback: '',
    read: readList(readHostName),
    help: 'Further host names that clients may use in `Host`, comma separated, without port. Loopback names, `host` and the host of `publicUrl` are always allowed.',
    who: 'Operators whose clients use a name that neither `host` nor `publicUrl` says.',
  },
  corsOrigins: {
    argument: '<origins>',
    fallback: '',
    read: readList(readCorsOrigin),
    help: 'Browser origins that may call the service, comma separated and exact, such as `https://app.example.com`. `*` is refused.',
    who: 'Developers of a web page that calls the service from the browser.',
  },
  publicUrl: {
    argument: '<url>',
    fallback: 'none',
    read: readWordOr('none', null, readPublicUrl),
    help: 'Scheme, host and port under which clients reach the service: the base of absolute links. `none`: what the request says.',
    who: 'Operators behind a proxy that does not pass the original host on.',
  },
  mountPrefix: {
    argument: '<path>',
    fallback: '',
    read: readMountPrefix,
    help: 'A path in front of every route, such as `/deployment/demo`; links begin with it.',
    who: 'Operators who share one host name among several services.',
  },
  absoluteUrls: {
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Gives the links of a job (`urls`) with scheme and host, as the official proxy does, instead of beginning with a slash.',
    who: 'Users whose client expects the links of the official proxy.',
  },
  trustedProxies: {
    argument: '<ranges>',
    fallback: '',
    read: readList(readCidr),
    help: 'Addresses or ranges of proxies whose `X-Forwarded-*` headers count, comma separated. From anywhere else they are ignored.',
    who: 'Operators with a proxy or load balancer in front.',
  },
  maxBody: {
    argument: '<size>',
    fallback: '32MiB',
    read: readBytes({ min: 1024, max: 1024 * MIB }),
    help: 'The largest JSON body, workflows included.',
    who: 'Users whose workflows hold large data, or operators who want less.',
  },
  brand: {
    argument: '<words>',
    fallback: 'Service,Comfy',
    read: readBrands,
    help: 'The words of branded header names, comma separated: each such header is sent once per word (`X-Service-Request-Id`, `X-Comfy-Request-Id`).',
    who: 'Operators who offer the service under a name of their own.',
  },
  bus: {
    argument: '<url>',
    fallback: 'auto',
    read: readWordOr('auto', null, readNats),
    help: 'How processes that share a `database` notify each other. `auto`: through the database itself. `nats://host:4222` or `tls://…`, several comma separated: through NATS servers, for some thirty processes and more, or where processes cannot connect to each other. With credentials `nats://user:password@host` or `nats://token@host`, which belong in the variable, never on a command line; `?credentials=<file>` names a file of them as the tools of NATS make it (`.creds`), or with the seed of an nkey; with `tls://`, `?sslrootcert=<file>` names your own authority, `sslcert` and `sslkey` what this process shows. See docs/scale-out.md.',
    who: 'Operators of some thirty processes or more, or of processes that cannot reach each other.',
    isSecret: true,
  },
  internalPort: {
    argument: '<port>',
    fallback: 'auto',
    read: readWordOr('auto', null, readCount({ min: 0, max: 65_535 })),
    help: 'The port on which the other processes of a shared `database` get live events of what runs here. Nobody else should be able to reach it. `auto`: 8190, or any free port if that is taken.',
    who: 'Operators with several processes behind a firewall, to open one known port.',
  },
  advertise: {
    argument: '<host>',
    fallback: 'auto',
    read: readWordOr('auto', null, readAdvertised),
    help: 'How other processes reach the internal port of this one: a host, an address, or a whole `http://host:port` behind a proxy. With it the port is open on every interface, or only on this machine if it names this machine. `auto`: the interfaces of `host`, and an address of this machine; with a loopback `host`, this machine only.',
    who: 'Operators whose processes do not see the address by which the others reach them (containers, NAT).',
  },
} as const satisfies SettingTable
