/** The budgets of an account: its own, which it makes and changes, and those that an operator set, which it sees. And what it spent in a month. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import type { BudgetOwner, Budgets } from '../../../domain/credits/budgets/manage-budgets.ts'
import type { ReadStatement } from '../../../domain/credits/statement.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import { toBudgetEdit, toBudgetView, toBudgetWish } from '../../kit/budget-view.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, readParameters, sendJson, sendTable } from '../../kit/request.ts'
import { toStatementCsv, toStatementView } from '../../kit/statement-view.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH } from '../views/job-view.ts'

interface BudgetDeps {
  readonly contextOf: ContextOf
  readonly budgets: Budgets
  readonly check: ContractCheck
  readonly readStatement: ReadStatement
}

const BUDGETS_PATH = `${API_PATH}/budgets`
const BUDGET_ROUTE = `${BUDGETS_PATH}/:id`
const MAX_BODY_BYTES = 16_384

function ownerOf({ contextOf }: BudgetDeps, request: FastifyRequest): BudgetOwner {
  const { accountId, keyId } = contextOf(request)
  return { accountId, as: 'account', actor: keyId === null ? `token of account ${accountId}` : `key ${keyId}` }
}

async function readBody(request: FastifyRequest, { check }: BudgetDeps, schema: string): Promise<JsonObject> {
  const body = await readJsonObject(request, { maxBytes: MAX_BODY_BYTES })
  const problem = check(schema, body, 'the request')
  if (problem !== null) throw new ServiceError('invalid_field', problem)
  return body
}

function listBudgets(app: FastifyInstance, { contextOf, budgets }: BudgetDeps): void {
  app.get(BUDGETS_PATH, needs('jobs:read'), async (request, reply) => {
    readParameters(request.raw.url ?? '', [])
    const found = await budgets.list(contextOf(request).accountId)
    return sendJson(reply, 200, { budgets: found.map(toBudgetView) })
  })
}

function createBudget(app: FastifyInstance, deps: BudgetDeps): void {
  app.post(BUDGETS_PATH, needs('keys:write'), async (request, reply) => {
    const wish = toBudgetWish(await readBody(request, deps, 'BudgetRequest'))
    return sendJson(reply, 201, toBudgetView(await deps.budgets.create(ownerOf(deps, request), wish)))
  })
}

function getBudget(app: FastifyInstance, { contextOf, budgets }: BudgetDeps): void {
  app.get(BUDGET_ROUTE, needs('jobs:read'), async (request, reply) =>
    sendJson(reply, 200, toBudgetView(await budgets.find(contextOf(request).accountId, idOf(request)))),
  )
}

function updateBudget(app: FastifyInstance, deps: BudgetDeps): void {
  app.patch(BUDGET_ROUTE, needs('keys:write'), async (request, reply) => {
    const edit = toBudgetEdit(await readBody(request, deps, 'BudgetUpdateRequest'))
    return sendJson(reply, 200, toBudgetView(await deps.budgets.change(ownerOf(deps, request), idOf(request), edit)))
  })
}

function deleteBudget(app: FastifyInstance, deps: BudgetDeps): void {
  app.delete(BUDGET_ROUTE, needs('keys:write'), async (request, reply) => {
    await deps.budgets.remove(ownerOf(deps, request), idOf(request))
    return reply.code(204).send()
  })
}

function getStatement(app: FastifyInstance, { contextOf, readStatement }: BudgetDeps): void {
  app.get(`${API_PATH}/statement`, needs('jobs:read'), async (request, reply) => {
    const month = readParameters(request.raw.url ?? '', ['month']).get('month') ?? null
    const statement = await readStatement(contextOf(request).accountId, month)
    return sendTable(request, reply, { json: () => toStatementView(statement), csv: () => toStatementCsv(statement) })
  })
}

export const BUDGET_OPERATIONS = [listBudgets, createBudget, getBudget, updateBudget, deleteBudget, getStatement]
