/** Where traces go. The names are those that OpenTelemetry gives to every program, so that one set of variables serves a whole host. */
import type { SettingName } from '../env.ts'
import { readChoice, readSwitch } from '../readers/read-choice.ts'
import { readCount } from '../readers/read-quantity.ts'
import { readOtlpHeaders, readOtlpUrl, readRatio, readResource, readServiceName } from '../readers/read-traces.ts'
import type { Setting } from './setting.ts'

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
// An empty variable counts as one that is not set, as OpenTelemetry says.
const orUnset =
  <Value>(read: (text: string) => Value, unset: string) =>
  (text: string) =>
    read(text === '' ? unset : text)

export const TRACE_SETTINGS = {
  otlpEndpoint: {
    group: 'Traces',
    argument: '<url>',
    fallback: '',
    read: readOtlpUrl,
    help: 'The base address of an OTLP/HTTP collector, such as `http://127.0.0.1:4318`; `/v1/traces` is added. Setting it turns traces on. See docs/traces.md.',
  },
  otlpTracesEndpoint: {
    group: 'Traces',
    argument: '<url>',
    fallback: '',
    read: readOtlpUrl,
    help: 'The whole address that spans are sent to, in place of the one that follows from `otlpEndpoint`.',
  },
  otlpHeaders: {
    group: 'Traces',
    argument: null,
    fallback: '',
    read: readOtlpHeaders,
    isSecret: true,
    help: 'Headers for the collector, as `name=value,name=value` with values percent-encoded: most often its key.',
  },
  otlpProtocol: {
    group: 'Traces',
    argument: '<protocol>',
    fallback: 'http/protobuf',
    read: orUnset(readChoice(['http/json', 'http/protobuf']), 'http/protobuf'),
    help: 'Spans are sent as Protocol Buffers over HTTP whichever of the two is given: a collector takes both at the same address. gRPC is not supported.',
  },
  otlpTimeout: {
    group: 'Traces',
    argument: '<milliseconds>',
    fallback: '10000',
    read: orUnset(readCount({ min: 1, max: 60_000, example: 10_000 }), '10000'),
    help: 'How long the collector may take for one batch, in milliseconds.',
  },
  otelServiceName: {
    group: 'Traces',
    argument: '<name>',
    fallback: 'atelier',
    read: orUnset(readServiceName, 'atelier'),
    help: 'The name of this service in traces.',
  },
  otelResourceAttributes: {
    group: 'Traces',
    argument: '<pairs>',
    fallback: '',
    read: readResource,
    help: 'Further attributes of this process that are sent with its spans, as `key=value,key=value`, for example `deployment.environment.name=staging`.',
  },
  otelTracesSampler: {
    group: 'Traces',
    argument: '<rule>',
    fallback: 'parentbased_always_on',
    read: orUnset(readChoice(SAMPLERS), 'parentbased_always_on'),
    help: `Which traces are recorded: ${SAMPLERS.map((name) => `\`${name}\``).join(', ')}. Those that begin with \`parentbased_\` follow the decision of the caller, if there is one.`,
  },
  otelTracesSamplerArg: {
    group: 'Traces',
    argument: '<ratio>',
    fallback: '1',
    read: orUnset(readRatio, '1'),
    help: 'The share of traces that the `traceidratio` samplers record, from 0 to 1.',
  },
  otelSdkDisabled: {
    group: 'Traces',
    argument: '',
    fallback: 'false',
    read: orUnset(readSwitch, 'false'),
    help: 'Turns traces off, whatever else is set.',
  },
} as const satisfies Partial<Record<SettingName, Setting<unknown>>>
