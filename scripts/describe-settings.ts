/** Renders docs/config.md from the table of settings. A test keeps the file in step; `node scripts/write-docs.ts` rewrites it. */
import { ENV, OTHER_ENV } from '../src/config/env.ts'
import {
  flagOf,
  GROUPS,
  isInGroup,
  SETTING_NAMES,
  SETTINGS,
  type SettingGroup,
  type SettingName,
} from '../src/config/settings/settings.ts'

const INTRODUCTION = `# Configuration

<!-- Written by \`node scripts/write-docs.ts\` from src/config/settings/settings.ts. Do not edit by hand. -->

Every setting can be given in four places. The first that has it wins:

1. a flag of \`npx atelier serve\`, such as \`--max-queue 500\`;
2. an environment variable, such as \`ATELIER_MAX_QUEUE=500\`;
3. \`atelier.config.json\` in the working directory, or the file named by \`--config\` or \`${OTHER_ENV.configFile}\`,
   such as \`{"maxQueue": 500}\`;
4. the default.

A wrong value, an unknown flag, an unknown key of the file or a contradiction stops the start with exit code 2 and one line that
names the setting, where it came from and how to fix it. An empty value counts as a value.

Durations are a number and a unit (\`ms\`, \`s\`, \`m\`, \`h\`, \`d\`). Sizes are a number and a unit (\`B\`, \`KiB\`, \`MiB\`, \`GiB\`, \`TiB\`, or
\`KB\` … \`TB\` for powers of 1000). Lists are separated by commas; flags for lists may be repeated, and the file may hold an array.
Secrets never appear in a log, an error or an answer.

Most services need none of these settings. The last column says who would set one, and when.`

const EPILOGUE = `\`npx atelier run\` and \`npx atelier doctor\` also read \`${OTHER_ENV.baseUrl}\` (the server to talk to, default \`http://127.0.0.1:8189\`).
The commands over the admin API read it too; without it they look for the service that holds the data folder.
\`npx atelier run --local\` needs no server; it uses only the settings of the group Engine.

## An example

<!-- config: local -->
\`\`\`json
{
  "host": "0.0.0.0",
  "publicUrl": "https://atelier.example.com",
  "trustedProxies": ["10.0.0.0/8"],
  "dataDir": "/var/lib/atelier",
  "retention": "30d",
  "maxQueue": 500
}
\`\`\`

with \`ATELIER_TOKEN\` and \`ATELIER_SECRET_KEY\` in the environment of the service.
`

const HEADINGS = ['setting', 'flag', 'variable', 'default', 'what it does', 'who sets it']

function toCells(name: SettingName): string[] {
  const { argument, fallback, help, who } = SETTINGS[name]
  const flag = flagOf(name)
  const spelledFlag = flag === null ? 'none' : `\`${argument === '' ? flag : `${flag} ${argument}`}\``
  const spelledDefault = fallback === '' ? 'empty' : `\`${fallback}\``
  return [`\`${name}\``, spelledFlag, `\`${ENV[name]}\``, spelledDefault, help, who]
}

/** Pads every column to its widest cell, as the formatter does. */
function toTable(rows: readonly (readonly string[])[]): string {
  const widths = HEADINGS.map((heading, column) => Math.max(heading.length, ...rows.map((row) => row[column].length)))
  const toLine = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [toLine(HEADINGS), toLine(widths.map((width) => '-'.repeat(width))), ...rows.map(toLine)].join('\n')
}

function toSection(group: SettingGroup): string {
  const names = SETTING_NAMES.filter((name) => isInGroup(name, [group]))
  return `## ${group}\n\n${toTable(names.map(toCells))}`
}

export function describeConfig(): string {
  return `${[INTRODUCTION, ...(Object.keys(GROUPS) as SettingGroup[]).map(toSection), EPILOGUE].join('\n\n')}`
}
