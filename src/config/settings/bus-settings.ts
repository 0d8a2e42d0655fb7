/** Settings of how the processes of a service hear of each other's jobs. */
import type { SettingName } from '../env.ts'
import { readAdvertised, readNats } from '../readers/read-bus.ts'
import { readPath, readWordOr } from '../readers/read-choice.ts'
import { readCount } from '../readers/read-quantity.ts'
import type { Setting } from './setting.ts'

export const BUS_SETTINGS = {
  bus: {
    group: 'Network',
    argument: '<url>',
    fallback: 'auto',
    read: readWordOr('auto', null, readNats),
    help: 'How processes that share a `database` notify each other. `auto`: through the database itself. `nats://host:4222` or `tls://…`, several comma separated: through NATS servers, for some thirty processes and more, or where processes cannot connect to each other. With credentials `nats://user:password@host` or `nats://token@host`, which belong in the variable or in `busCredentialsFile`, never on a command line; with `tls://`, `?sslrootcert=<file>` names your own authority, `sslcert` and `sslkey` what this process shows. See docs/scale-out.md.',
    isSecret: true,
  },
  busCredentialsFile: {
    group: 'Network',
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readPath),
    help: 'A file of credentials for the NATS servers of `bus`, as their tools make it (`.creds`), or with the seed of an nkey. It is read again for each connection.',
  },
  internalPort: {
    group: 'Network',
    argument: '<port>',
    fallback: 'auto',
    read: readWordOr('auto', null, readCount({ min: 0, max: 65_535 })),
    help: 'The port on which the other processes of a shared `database` get live events of what runs here. Nobody else should be able to reach it. `auto`: 8190, or any free port if that is taken.',
  },
  advertise: {
    group: 'Network',
    argument: '<host>',
    fallback: 'auto',
    read: readWordOr('auto', null, readAdvertised),
    help: 'How other processes reach the internal port of this one: a host, an address, or a whole `http://host:port` behind a proxy. With it the port is open on every interface, or only on this machine if it names this machine. `auto`: the interfaces of `host`, and an address of this machine; with a loopback `host`, this machine only.',
  },
} as const satisfies Partial<Record<SettingName, Setting<unknown>>>
