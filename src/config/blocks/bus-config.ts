/** The bus of a process, and where others reach it, out of its settings. */
import { networkInterfaces } from 'node:os'
import { isLoopback } from '../readers/read-network.ts'
import { mustBeReadable } from '../secrets.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

/** `local`: within one process. `notify`: between all processes on one Postgres. `nats`: through NATS servers. */
export type BusConfig =
  | { readonly kind: 'local' }
  | { readonly kind: 'notify'; readonly listener: ListenerConfig }
  | {
      readonly kind: 'nats'
      readonly servers: readonly string[]
      readonly isEncrypted: boolean
      /** Of the authorities that may sign the servers' certificates, absolute; null: those that the runtime knows. */
      readonly rootCertificateFile: string | null
      /** What this process shows to the servers, absolute. */
      readonly clientCertificateFiles: { readonly certificate: string; readonly key: string } | null
      /** null: the password is a token, or there is none. */
      readonly user: string | null
      /** Absolute. */
      readonly credentialsFile: string | null
    }

/** Where other processes of the service reach this one. */
export interface ListenerConfig {
  readonly host: string
  /** null: the usual one, or any when that is taken. */
  readonly port: number | null
  /** The address under which other processes reach the internal port. */
  readonly addressAt: (port: number) => string
}

export function toBusConfig(values: SettingValues, toAbsolute: ToAbsolute): BusConfig {
  const { database, bus } = values
  if (database === null) return { kind: 'local' }
  if (bus === null) return { kind: 'notify', listener: toListener(values) }
  const { servers, isEncrypted, user, rootCertificate: root, clientCertificate: own, credentials } = bus
  const toFile = (parameter: string, given: string) =>
    mustBeReadable(`bus names the ${parameter}`, toAbsolute('bus', given))
  return {
    ...{ kind: 'nats', servers, isEncrypted, user },
    rootCertificateFile: root === null ? null : toFile('sslrootcert', root),
    clientCertificateFiles: own && {
      certificate: toFile('sslcert', own.certificate),
      key: toFile('sslkey', own.key),
    },
    credentialsFile: credentials === null ? null : toAbsolute('bus', credentials),
  }
}

function toListener({ host, internalPort: port, advertise }: SettingValues): ListenerConfig {
  if (advertise !== null) {
    const { scheme, host: name, port: said } = advertise
    // Behind a proxy on this machine the port need not be reachable from elsewhere.
    const nearHost = isNearAddress(`http://${name}`) ? name.replace(/^\[|\]$/g, '') : null
    return {
      host: nearHost ?? (name.startsWith('[') ? '::' : EVERYWHERE),
      port,
      addressAt: (bound) => `${scheme}://${name}:${said ?? bound}`,
    }
  }
  const name = EVERY_INTERFACE.includes(host) ? findAddress() : host
  return {
    host: host === '' ? EVERYWHERE : host,
    port,
    addressAt: (bound) => `http://${name.includes(':') ? `[${name}]` : name}:${bound}`,
  }
}

const EVERYWHERE = '0.0.0.0'
const EVERY_INTERFACE = ['', '0.0.0.0', '::']

/** The first address of this machine that others can reach. */
function findAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  const found = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)
  return found?.address ?? '127.0.0.1'
}

/** Whether only processes on the same machine can reach an address. */
export function isNearAddress(address: string): boolean {
  return isLoopback(new URL(address).hostname.replace(/^\[|\]$/g, ''))
}
