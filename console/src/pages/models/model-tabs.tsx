import { hrefOf } from '../../routes.ts'

const PLACES = { models: ['/models', 'Models'], calls: ['/models/calls', 'Calls'] } as const

export function ModelTabs({ here }: { readonly here: keyof typeof PLACES }) {
  return (
    <nav class="segments page-tabs" aria-label="Models and calls">
      {Object.entries(PLACES).map(([name, [to, label]]) => (
        <a key={name} href={hrefOf(to)} aria-current={name === here ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  )
}
