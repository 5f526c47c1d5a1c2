// Package chat adds error handlers that send a failure to a chat, when it is imported:
//
//	import _ "github.com/elasticron/elasticron/errorhandler/chat"
//
//	SLACK            slack.webhookFile or slack.webhookEnv
//	DINGTALK         dingtalk.webhookFile or .webhookEnv; dingtalk.keyword, which the text then
//	                 begins with; dingtalk.secretFile or .secretEnv, which signs
//	WECHAT, WECOM    wechat.webhookFile or .webhookEnv
//	FEISHU, LARK     feishu.webhookFile or .webhookEnv; feishu.secretFile or .secretEnv, which signs
//
// Each has the timeouts of WEBHOOK (package errorhandler) under its own name, such as
// dingtalk.connectTimeoutMilliseconds and dingtalk.readTimeoutMilliseconds. 0 is refused: a run
// waits for its message.
//
// The names are ElasticJob's, but that the address of a webhook, which is all that is needed to
// write to the chat, comes from a file or the environment.
package chat
