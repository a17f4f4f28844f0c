package dev.parallax.springboot;

import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.boot.restclient.RestTemplateBuilder;
import org.springframework.web.reactive.function.client.WebClient;

/** A typical application: nothing in it refers to us. */
@Configuration
@EnableAutoConfiguration
class Service {
    @Bean
    RestClient restClient(RestClient.Builder builder) {
        return builder.build();
    }

    @Bean
    RestTemplate restTemplate(RestTemplateBuilder builder) {
        return builder.build();
    }

    @Bean
    WebClient webClient(WebClient.Builder builder) {
        return builder.build();
    }

    /** Found as all nested components are. */
    @RestController
    record Pages(RestClient restClient, RestTemplate restTemplate, WebClient webClient) {
        @GetMapping("/RestClient")
        String byRestClient(@RequestParam("url") String url) {
            return restClient.get().uri(url).retrieve().body(String.class);
        }

        @GetMapping("/RestTemplate")
        String byRestTemplate(@RequestParam("url") String url) {
            return restTemplate.getForObject(url, String.class);
        }

        @GetMapping("/WebClient")
        String byWebClient(@RequestParam("url") String url) {
            return webClient.get().uri(url).retrieve().bodyToMono(String.class).block();
        }
    }

    /** Starts it on a free port. */
    static ConfigurableApplicationContext start(Class<?> more, String... properties) {
        return new SpringApplicationBuilder(Service.class, more)
                .bannerMode(Banner.Mode.OFF)
                .properties("server.port=0", "spring.datasource.url=jdbc:h2:mem:service", "logging.level.root=warn")
                .properties(properties)
                .run();
    }

    static ConfigurableApplicationContext start(String... properties) {
        return start(Service.class, properties);
    }

    static int port(ConfigurableApplicationContext service) {
        return service.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
    }
}
